#!/bin/bash
# pages.sh [PAGE.md...]: every command of the pages, run as a reader would, from top to bottom. Each page has a scratch copy of
# this checkout, and "/tmp" in it is a folder there. What is run is what stands in ```sh blocks, command by command, in one
# shell a page; the logs, build/pages/PAGE.log, are to be read beside the page. The links of a page are looked up, too.
#
# A command must end with 0 (diff: with 1), unless the line before its block says otherwise: <!-- exit codes: 0 1 -->, one a
# command, is for the exercises, where a reader is to find out. A comment behind a command says when it is not run, to reader and
# script, nor what follows it in its block:
#   needs a GPU, needs numpy, needs TOOL    where there is none
#   needs a network                         unless PAGES_NETWORK=1
#   takes minutes                           unless PAGES_LONG=1
# Exit code: 0, 1 a command or a link failed, 2 usage. Last line: counts of commands and of pages whose links were looked up.
set -u
cd "$(dirname "$0")/.." || exit 2
pages_all=(README.md CONTRIBUTING.md tutorials/*.md proofs/README.md proofs/pages/*.md data/*/README.md cuda/emu/README.md
    tests/*/README.md)
[ $# -eq 0 ] || pages_all=("$@")
for pages_page in "${pages_all[@]}"; do
    [ -f "$pages_page" ] || { echo "pages: no page $pages_page; name one as tutorials/01-naive.md"; exit 2; }
done
make build/flashdecode >/dev/null || { echo "pages: the program does not build"; exit 1; }
pages_logs=$PWD/build/pages pages_root=$(mktemp -d) pages_passed=0 pages_failed=0 pages_skipped=0
trap 'rm -rf "$pages_root"' EXIT
mkdir -p "$pages_logs"

pages_say() { # WHAT LINE TEXT
    printf '%-4s  %s:%s  %s\n' "$1" "$pages_page" "$2" "$3"
}

# The lines of a page's ```sh blocks, behind their number and a tab; a line "codes" before a block that has them.
pages_blocks() {
    awk '
        /<!-- exit codes:/ { codes = $0; gsub(/.*exit codes: *| *-->.*/, "", codes) }
        /^ *```/ && inside { inside = 0; codes = ""; next }
        /^ *([0-9]+\. )?```sh *$/ { inside = 1; indent = index($0, "`") - 1; print NR "\tcodes " codes; next }
        /^ *```/ { inside = 2; next }
        inside == 1 { print NR "\t" substr($0, indent + 1) }' "$1"
}

# Why is the command not run? Nothing: it is.
pages_reason() {
    local pages_need
    [[ $1 =~ '# '(.*' ')?takes' 'minutes ]] && [ "${PAGES_LONG:-0}" != 1 ] && echo "takes minutes"
    [[ $1 =~ '# '(.*' ')?needs' '(a' '[A-Za-z]+|[a-z]+) ]] || return
    pages_need=${BASH_REMATCH[2]}
    case $pages_need in
    "a GPU") command -v nvidia-smi ;;
    "a network") [ "${PAGES_NETWORK:-0}" = 1 ] ;;
    numpy) python3 -c 'import numpy, safetensors' ;;
    *) command -v "$pages_need" ;;
    esac >/dev/null 2>&1 || echo "needs $pages_need"
}

# Whole as a command: the shell wants no further line.
pages_whole() {
    case $1 in *\\$'\n') return 1 ;; esac
    [ -z "$(bash -n <<<"$1" 2>&1)" ]
}

pages_run() { # LINE COMMAND EXPECTED
    local pages_code pages_first=${2%%$'\n'*} pages_start=$SECONDS
    pages_why=${pages_why:-$(pages_reason "$2" | paste -sd ' ')}
    if [ -n "$pages_why" ]; then
        pages_say skip "$1" "${pages_first%%  #*}: $pages_why"
        pages_skipped=$((pages_skipped + 1))
        return
    fi
    { echo; sed '1s/^/$ /; 2,$s/^/> /' <<<"${2%$'\n'}"; } >>"$pages_log"
    eval "${2//\/tmp\//$pages_tmp/}" >>"$pages_log" 2>&1 </dev/null
    pages_code=$?
    echo "[line $1: exit code $pages_code, $((SECONDS - pages_start)) s]" >>"$pages_log"
    if [ "$pages_code" -eq "$3" ]; then
        pages_passed=$((pages_passed + 1))
    else
        pages_say FAIL "$1" "exit code $pages_code, not $3: $pages_first"
        tail -n 4 "$pages_log" | sed '$d; s/^/      /'
        pages_failed=$((pages_failed + 1))
    fi
}

pages_commands() {
    local pages_codes=() pages_command="" pages_why="" pages_number pages_line pages_at pages_code pages_tmp=$pages_root/tmp
    mkdir "$pages_root/checkout" "$pages_tmp"
    export PLAY=$pages_tmp/fd-play
    # Without the build folders of other flags, which hold a stamp of their own.
    tar -c $(find build -mindepth 2 -name flags -printf '--exclude=./%h ') --exclude=./build/pages . |
        tar -xp -C "$pages_root/checkout"
    cd "$pages_root/checkout" || exit 2
    git status >/dev/null 2>&1 # or the first checkout of a page would write, and make build, every file anew
    while IFS=$'\t' read -r pages_number pages_line <&3; do
        case $pages_command$pages_line in
        "codes "*) read -ra pages_codes <<<"${pages_line#codes }"; pages_why=""; continue ;;
        "" | "#"*) continue ;;
        esac
        [ -n "$pages_command" ] || pages_at=$pages_number
        pages_command+=$pages_line$'\n'
        if pages_whole "$pages_command"; then
            case $pages_command in "diff "*) pages_code=1 ;; *) pages_code=0 ;; esac
            pages_run "$pages_at" "$pages_command" "${pages_codes[0]:-$pages_code}"
            pages_codes=("${pages_codes[@]:1}")
            pages_command=""
        fi
    done 3< <(pages_blocks "$pages_logs/../../$pages_page")
    [ -z "$pages_command" ] || { pages_say FAIL "$pages_at" "no whole command"; pages_failed=$((pages_failed + 1)); }
    echo "$pages_passed $pages_failed $pages_skipped" >"$pages_root/counts"
}

pages_links() {
    local pages_link pages_bad=0
    for pages_link in $(sed 's/`[^`]*`//g' "$pages_page" | grep -oE '\]\([^)#]+' | sed 's/^](//' | grep -vE '^[a-z]+:'); do
        [ -e "$(dirname "$pages_page")/$pages_link" ] || { pages_say FAIL "" "no such file: $pages_link"; pages_bad=1; }
    done
    [ "$pages_bad" -eq 0 ] && pages_passed=$((pages_passed + 1)) || pages_failed=$((pages_failed + 1))
}

pages_main() {
    for pages_page in "${pages_all[@]}"; do
        pages_links
        if pages_blocks "$pages_page" | grep -q .; then
            pages_log=$pages_logs/$(echo "${pages_page%.md}" | tr / -).log
            : >"$pages_log"
            (pages_commands)
            read -r pages_passed pages_failed pages_skipped <"$pages_root/counts"
            rm -rf "$pages_root/checkout" "$pages_root/tmp"
        fi
    done
    echo "$pages_passed passed, $pages_failed failed, $pages_skipped skipped"
    [ "$pages_failed" -eq 0 ]
}

pages_main; exit # read as one line, so that this file may be edited while its commands run
