# FlashDecoding, verified. `make help` lists the targets; `make setup report` and `make setup test` do everything.
# Nothing is detected while this file is parsed: recipes find out, and say what is missing.

MAKEFLAGS += -rR --no-print-directory
.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

BUILD  ?= build
SIZE   ?= small
CC      = gcc
OBJCOPY ?= objcopy
PREFIX ?= /usr/local

# Ours first, the user's CFLAGS and LDFLAGS last. No contraction and no fast-math: the bits are part of the contract.
WARNINGS  := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wdouble-promotion
FD_CFLAGS := -std=c11 -O2 -g -ffp-contract=off -fno-fast-math $(WARNINGS)
INCLUDES  := -Ireference -Itests -Icuda
OPENMP    ?= -fopenmp
LIBS      := -lmpfr -lgmp -ljansson -lm -ldl

# make CONFIG=asan ...: AddressSanitizer and UBSan, in a build folder of its own.
ifeq ($(CONFIG),asan)
BUILD     := build/asan
SANITIZE  := -fsanitize=address,undefined -fno-sanitize-recover=undefined
FD_CFLAGS := $(FD_CFLAGS:-O2=-O1) $(SANITIZE)
endif

# make CONFIG=tsan: ThreadSanitizer on judge and CPU rungs. By clang, whose OpenMP tells it through libarcher who waits for
# whom (libomp-dev), as gcc's does not; without the emulator, whose fibers and hooks are not what it takes them for.
ifeq ($(CONFIG),tsan)
BUILD     := build/tsan
CC        := clang
EMULATOR  := none
FD_CFLAGS += -fsanitize=thread
endif

# make STATIC=1: everything but the C library inside the program, which then runs on a bare machine.
LINK_OPENMP = $(OPENMP)
ifeq ($(STATIC),1)
LINK_OPENMP := -static-libgcc
LIBS := -Wl,-Bstatic -lmpfr -lgmp -ljansson $(if $(OPENMP),-l:libgomp.a) -Wl,-Bdynamic -lm -lpthread -ldl
endif

# What plug-ins may call in the program (macOS judges none).
EXPORTS = $$([ "$$(uname)" != Linux ] || echo -Wl,--dynamic-list=tests/plugin_symbols.list)

V ?= 0
ifeq ($(V),0)
Q   := @
say  = @printf '  %-2s  %s\n' $(1) $(2)
endif

# With `setup` among the goals, everything else waits for it, under -j too.
WAIT := $(if $(filter setup,$(MAKECMDGOALS)),setup)

RUNGS    := $(sort $(wildcard reference/[0-9][0-9]_*.c))
CUDA     := $(if $(filter none,$(EMULATOR)),,$(sort $(wildcard cuda/[0-9][0-9]_*.cu)))
MUTANTS  := $(sort $(wildcard tests/mutants/*.mutant))
FAULTS   := $(sort $(wildcard tests/emulator_faults/*.cu))
SUITES   := $(sort $(wildcard tests/test_*.c))
PLUGINS  := $(patsubst tests/plugins/%,$(BUILD)/plugins/%.so,$(basename $(sort $(wildcard tests/plugins/*.c tests/plugins/*.cu))))
LIBRARY  := $(sort $(wildcard reference/*.c cuda/*.c cuda/gpu/*.c cuda/emu/*.c)) $(filter-out $(SUITES) tests/main.c,$(sort $(wildcard tests/*.c)))
MUTANT_C := $(MUTANTS:tests/mutants/%.mutant=$(BUILD)/mutants/%.c)
PARENT_C := $(RUNGS:reference/%.c=$(BUILD)/parents/%.c)
TABLES   := $(BUILD)/ladder.c $(BUILD)/hooked.c $(BUILD)/mutants.c $(BUILD)/parents.c
OBJECTS  := $(LIBRARY:%.c=$(BUILD)/obj/%.o) $(CUDA:%.cu=$(BUILD)/obj/%.o) $(CUDA:%.cu=$(BUILD)/hooked/%.o) $(MUTANT_C:.c=.o) $(PARENT_C:.c=.o) $(TABLES:.c=.o)
FAULTS_O := $(FAULTS:%.cu=$(BUILD)/obj/%.o) $(FAULTS:%.cu=$(BUILD)/hooked/%.o)
PROGRAM  := $(BUILD)/flashdecode
SUITE    := $(BUILD)/suite
REPORT   := $(BUILD)/report
FORMATTED := $(sort $(wildcard reference/*.[ch] tests/*.[ch] tests/fuzz/*.c cuda/*.h cuda/*.cu cuda/*/*.[ch] cuda/*/*.cu* tests/emulator_faults/* tests/plugins/* tutorials/plugin/*.c* data/golden/*.[ch]))

# GPU=1, which make gpu sets: the CUDA rungs by nvcc, without the emulator. Needs the CUDA toolkit, and no GPU.
NVCC      ?= nvcc
GPU_ARCHS ?= 80 89 90a
NVCC_FLAGS = -std=c++20 -O3 -lineinfo -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers $(INCLUDES)
ifeq ($(GPU),1)
FD_CFLAGS += -DFD_GPU $(if $(filter 1,$(OBSERVE)),-DFD_OBSERVE)
NVCC_FLAGS += -Xptxas -v $(if $(filter 1,$(OBSERVE)),-DFD_OBSERVE)
EMULATOR  := none
OBJECTS   += $(patsubst %.cu,$(BUILD)/obj/%.o,$(wildcard cuda/gpu/*.cu))
NVCC_HOME  = "$$(dirname "$$(readlink -f "$$(command -v $(NVCC))")")/.."
LIBS      := -L$(NVCC_HOME)/lib64 -Wl,-Bstatic -lcudart_static -l:libstdc++.a $(LIBS) -lrt
endif
ifeq ($(EMULATOR),none)
FD_CFLAGS += -DFD_NO_EMULATOR
EMULATES  := cuda/emu/% tests/cmd_emulate.c tests/emulate.c tests/emulate_options.c
LIBRARY   := $(filter-out $(EMULATES),$(LIBRARY))
OBJECTS   := $(filter-out $(EMULATES:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/cuda/emu/% $(BUILD)/hooked/% $(BUILD)/hooked.o,$(OBJECTS))
endif

##@ Everyday
all: $(PROGRAM)  ## build the program
	@echo "Next: make test, make report, or $(PROGRAM) --help"

test: $(PROGRAM) $(SUITE)  ## unit tests, the oracle's verdict on every rung, the mutants
	$(Q)FD_COMMIT="$$(git rev-parse --short HEAD 2>/dev/null)" sh tests/run_tests.sh $(BUILD) $(SIZE)

report: $(REPORT)/index.html  ## one offline page; runs again only what changed
	@for f in verify mutants killtable; do tail -n 1 $(REPORT)/$$f.txt; done
	@echo "Open $<"
	@for f in verify mutants killtable; do \
	    tail -n 1 $(REPORT)/$$f.txt | grep -q ' 0 failed' || { echo "report: $$f failed"; exit 1; }; done

verify: $(PROGRAM)  ## judge every rung on every case (SIZE=small|class|full)
	$(Q)$(PROGRAM) exp --if-needed && $(PROGRAM) verify --size $(SIZE)

mutants: $(PROGRAM)  ## judge the wrong rungs: each must die
	$(Q)$(PROGRAM) exp --if-needed && $(PROGRAM) mutants

curves: $(PROGRAM)  ## how small may a fault be before the judge misses it
	$(Q)$(PROGRAM) exp --if-needed && $(PROGRAM) curves

PLAY ?= /tmp/fd-play
play:  ## a fresh copy of this checkout in /tmp/fd-play, to break things in (PLAY=dir)
	$(Q)sh tests/play.sh "$(PLAY)"

fuzz:  ## any bytes as a file of tensors, by libFuzzer (needs clang; FUZZ_SECONDS=60)
	$(Q)command -v $(FUZZ_CC) >/dev/null || { echo "make fuzz: no $(FUZZ_CC) here; install clang, or name it: FUZZ_CC=path"; exit 2; }
	$(Q)$(MAKE) $(BUILD)/safetensors_fuzz && mkdir -p $(BUILD)/fuzz_corpus && $(BUILD)/safetensors_fuzz -max_total_time=$(FUZZ_SECONDS) \
	    -max_len=4096 -timeout=10 -rss_limit_mb=1024 -verbosity=0 -print_final_stats=1 -dict=tests/fuzz/safetensors.dict \
	    -artifact_prefix=$(BUILD)/fuzz_ $(BUILD)/fuzz_corpus tests/fuzz/corpus

source-mutants: $(PROGRAM) $(SUITE)  ## change a rung one token at a time (10 min; RUNG=05)
	$(Q)$(PROGRAM) exp --if-needed >/dev/null && LIBS="$(LIBS)" OBJECTS="$(filter-out $(BUILD)/mutants/% $(BUILD)/parents/% \
	    $(BUILD)/ladder.o $(BUILD)/mutants.o $(BUILD)/parents.o,$(OBJECTS))" sh tests/source_mutants/run.sh $(BUILD) "$(CC)" $(RUNG)

# OBSERVE=1: build/observe, the same program with kernels that note when and where their blocks run; not for timing.
GPU_BUILD = $(BUILD)/$(if $(filter 1,$(OBSERVE)),observe,gpu)
gpu:  ## build/gpu/flashdecode, with nvcc (GPU_ARCHS="80 89 90a"; OBSERVE=1: build/observe)
	$(Q)command -v $(NVCC) >/dev/null || { echo "make gpu: no $(NVCC) here; install the CUDA toolkit, or name it: NVCC=path"; exit 2; }
	$(Q)$(MAKE) GPU=1 STATIC=1 BUILD=$(GPU_BUILD) $(GPU_BUILD)/flashdecode

golden: $(PROGRAM)  ## write the golden vectors of data/golden anew
	$(Q)rm -f data/golden/*.safetensors && $(PROGRAM) golden data/golden
	$(Q)cd data/golden && LC_ALL=C sha256sum *.safetensors > SHA256SUMS

killtable: $(PROGRAM)  ## published acceptance rules beside ours
	$(Q)$(PROGRAM) exp --if-needed && $(PROGRAM) killtable

proofs:  ## check the machine-checked proofs (needs Coq: make setup-proofs)
	$(Q)sh proofs/check.sh $(BUILD)

bench: $(PROGRAM)  ## time every rung against reading the same bytes
	$(Q)$(PROGRAM) bench --size $(SIZE)

plots: $(REPORT)/plots.done  ## error and time plots, SVG and PNG

report-text: $(REPORT)/plots.done  ## ladder and plots in the terminal
	$(Q)sh plots/report_text.sh $(REPORT)

##@ Setting up
PACKAGES := gcc libc6-dev libmpfr-dev libgmp-dev libjansson-dev libcriterion-dev gnuplot-nox

setup:  ## install what is missing (Debian, Ubuntu; elsewhere name it)
	$(Q)sh tests/setup.sh $(PACKAGES)

setup-proofs:  ## the same for Coq and its libraries, for make proofs
	$(Q)sh tests/setup.sh coq libcoq-flocq libcoq-interval

doctor:  ## what is there, what is missing, what is lost without it
	$(Q)sh tests/doctor.sh "$(CC)"

install: $(PROGRAM)  ## copy the program, its cases and fd.h under PREFIX
	install -D $(PROGRAM) "$(DESTDIR)$(PREFIX)/bin/flashdecode"
	install -D -m 644 reference/fd.h "$(DESTDIR)$(PREFIX)/include/fd.h"
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/flashdecode" data/cases.csv data/cases_hashes.csv
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/flashdecode/real" data/real/*.safetensors data/real/LICENSE-model.txt

##@ Upkeep
fmt:  ## format the C code
	$(Q)clang-format -i $(FORMATTED)

lint: lint-clang  ## formatting, and both compilers without a warning
	$(Q)$(MAKE) CC=gcc BUILD=build/lint-gcc CFLAGS=-Werror build/lint-gcc/flashdecode build/lint-gcc/suite

lint-clang:
	$(Q)clang-format --dry-run -Werror $(FORMATTED)
	$(Q)$(MAKE) CC=clang BUILD=build/lint-clang OPENMP= CFLAGS="-Werror -Wno-unknown-pragmas" build/lint-clang/flashdecode build/lint-clang/suite

ptxas: gpu  ## registers, shared memory and spills of every CUDA kernel of make gpu
	$(Q){ echo "# nvcc $$($(NVCC) --version | sed -n 's/.*release.* //p'), $(filter -O%,$(NVCC_FLAGS)), sm_$(subst $() ,$() sm_,$(GPU_ARCHS))"; \
	echo "rung,kernel,arch,registers,smem_static,stack,spill_stores,spill_loads"; \
	! grep warning $(GPU_BUILD)/obj/cuda/gpu/*.ptxas && awk -f cuda/gpu/ptxas.awk $(CUDA:%.cu=$(GPU_BUILD)/obj/%.ptxas); } > $(GPU_BUILD)/ptxas.csv
	$(Q)awk -F, 'NR > 2 && $$6 + $$7 + $$8 > 0 { print "ptxas: spills or stack in " $$2 " for " $$3; bad = 1 } END { exit bad }' $(GPU_BUILD)/ptxas.csv
	$(Q)if [ "$$(head -n 1 $(GPU_BUILD)/ptxas.csv)" != "$$(head -n 1 data/measured/ptxas.csv)" ]; then \
	    echo "ptxas: recorded with another toolkit ($$(head -n 1 data/measured/ptxas.csv)); no spills here"; \
	else diff data/measured/ptxas.csv $(GPU_BUILD)/ptxas.csv || { echo "ptxas: if that is meant: cp $(GPU_BUILD)/ptxas.csv data/measured"; exit 1; }; fi

counters: $(PROGRAM)  ## write what the emulator counts into the pages of the CUDA rungs
	$(Q)sh plots/counters.sh $(PROGRAM) tutorials
	$(Q)sh plots/counters_ncu.sh $(PROGRAM) tutorials/emulator.md data/measured/h200

readme: $(REPORT)/index.html  ## write the measured tables into README.md and the pages of the CUDA rungs
	$(Q)sh plots/readme.sh $(REPORT) README.md

clean:  ## remove everything that was built
	rm -rf build "$(BUILD)"

help:  ## this list
	$(Q)awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile
	@printf '\n  All of them take SIZE=small|class|full BUILD=dir CONFIG=asan|tsan STATIC=1 V=1\n  CFLAGS=...\n'

.PHONY: FORCE all play test report verify mutants fuzz source-mutants gpu ptxas killtable curves proofs bench plots report-text setup setup-proofs doctor install fmt lint lint-clang counters readme golden clean help

# ---- Building ----------------------------------------------------------------------------------------------------

# Stamps change when what they hold does: the flags, the lists of sources, the size of the report.
$(BUILD)/flags: STAMP = $(CC) $(FD_CFLAGS) $(OPENMP) $(CFLAGS) $(LDFLAGS) $(subst ",,$(LIBS)) $(NVCC_FLAGS) $(GPU_ARCHS)
$(BUILD)/sources: STAMP = $(LIBRARY) $(CUDA) $(FAULTS) $(MUTANTS) $(SUITES)
$(REPORT)/size: STAMP = $(SIZE)
$(BUILD)/flags $(BUILD)/sources $(REPORT)/size: FORCE | $(WAIT)
	@mkdir -p $(@D)
	@printf '%s\n' '$(STAMP)' | cmp -s - $@ || printf '%s\n' '$(STAMP)' > $@
FORCE:

LEVEL = # beyond -O2, where a target says so
COMPILE = $(CC) $(FD_CFLAGS) $(LEVEL) $(OPENMP) $(INCLUDES) -DFD_BUILD_FLAGS='"$(CC) $(FD_CFLAGS) $(OPENMP) $(CFLAGS)"' -MMD -MP $(CFLAGS)

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(WAIT)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(COMPILE) -c $< -o $@

# The emulator, too, is as fast as it can be: most of make test's time is spent in it and in the rungs that it runs.
$(BUILD)/obj/cuda/emu/%.o: COMPILE += -O3

# CUDA rungs as C, for the emulator: what C++ would refuse, which nvcc compiles them as, is refused here too.
ifneq ($(GPU),1)
$(CUDA:%.cu=$(BUILD)/obj/%.o) $(FAULTS:%.cu=$(BUILD)/obj/%.o): LEVEL = -O3
$(BUILD)/obj/%.o: %.cu $(BUILD)/flags | $(WAIT)
	@mkdir -p $(@D)
	$(call say,EM,$<)
	$(Q)$(COMPILE) -Wc++-compat -DFD_EMU_FILE=$(*F) -x c -c $< -o $@
else
$(BUILD)/obj/%.o: %.cu $(BUILD)/flags | $(WAIT)
	@mkdir -p $(@D)
	$(call say,NV,$<)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(foreach a,$(GPU_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) -MMD -MP \
	    -MF $(@:.o=.d) -c $< -o $@ >$(@:.o=.ptxas) 2>&1 || { cat $(@:.o=.ptxas) >&2; exit 1; }
	@grep warning $(@:.o=.ptxas) >&2 || true
endif

# The same once more with hooks (cuda/emu/observe.h): what a sanitizer's compiler inserts, without a sanitizer. Locals in
# registers, but no vectors: a GPU's thread loads scalars. (clang's `bounds` also traps, at no line, where it alone sees a size.)
BOUNDS = $(if $(findstring clang,$(CC)),array-bounds,bounds)
HOOKED = $(CC) $(filter-out $(SANITIZE),$(FD_CFLAGS)) $(INCLUDES) -MMD -MP $(CFLAGS) -O1 -fno-tree-vectorize \
         -fno-tree-slp-vectorize -fsanitize=thread -fsanitize=$(BOUNDS) -fsanitize-recover=$(BOUNDS) -DFD_EMU_HOOKED=1
UNHOOK = memcpy=__tsan_memcpy memmove=__tsan_memmove memset=__tsan_memset \
         __ubsan_handle_out_of_bounds=fd_emu_out_of_bounds
$(BUILD)/hooked/%.o: %.cu $(BUILD)/flags | $(WAIT)
	@mkdir -p $(@D)
	$(call say,HK,$<)
	$(Q)$(HOOKED) -DFD_EMU_FILE=hooked_$(*F) $(foreach f,$(*F) $(filter-out $(*F),$(basename $(notdir $(CUDA)))),-Dfd_rung_$(f)=fd_hooked_$(f)) -x c -c $< -o $@
	$(Q)$(OBJCOPY) $(UNHOOK:%=--redefine-sym %) $@

$(BUILD)/%.o: $(BUILD)/%.c $(BUILD)/flags | $(WAIT)
	$(call say,CC,$<)
	$(Q)$(COMPILE) -c $< -o $@

$(PROGRAM): $(OBJECTS) $(BUILD)/obj/tests/main.o $(BUILD)/sources tests/plugin_symbols.list
	$(call say,LD,$@)
	$(Q)$(CC) $(FD_CFLAGS) $(LINK_OPENMP) $(CFLAGS) $(filter %.o,$^) -o $@ $(EXPORTS) $(LDFLAGS) $(LIBS)

$(SUITE): $(OBJECTS) $(FAULTS_O) $(SUITES:%.c=$(BUILD)/obj/%.o) $(BUILD)/sources | $(PLUGINS) $(PROGRAM)
	$(call say,LD,$@)
	$(Q)$(CC) $(FD_CFLAGS) $(OPENMP) $(CFLAGS) $(filter %.o,$^) -o $@ $(LDFLAGS) -lcriterion $(LIBS)

# Plug-ins with one fault each, for tests/test_plugins.c: no more of this project's flags than anybody's would have.
$(BUILD)/plugins/%.so: tests/plugins/%.c tests/plugins/plugin.h tests/plugins/merge.h tests/plugins/daemon.h reference/fd.h $(BUILD)/flags | $(WAIT)
	@mkdir -p $(@D)
	$(call say,PI,$<)
	$(Q)$(CC) -std=c11 -D_DEFAULT_SOURCE -O2 -g -shared -fPIC $(WARNINGS_OF_PLUGINS) -Ireference -pthread $(CFLAGS) $< $(PLUGIN_C) -o $@ -lm
WARNINGS_OF_PLUGINS := -Wall -Wextra -Wno-missing-field-initializers
$(BUILD)/plugins/%.so: tests/plugins/%.cu tests/plugins/emu_plugin.h tests/plugins/gpu_plugin.h cuda/fd_cuda.h cuda/emu/emu.h reference/fd.h $(BUILD)/flags | $(WAIT)
	@mkdir -p $(@D)
	$(call say,PI,$<)
	$(Q)$(CC) -x c -std=c11 -O1 -g -fPIC $(WARNINGS_OF_PLUGINS) -Ireference -Icuda -fsanitize=thread -DFD_EMU_HOOKED=1 $(CFLAGS) -c $< -o $(@:.so=.o)
	$(Q)$(CC) -shared $(@:.so=.o) -o $@ -lm
$(BUILD)/plugins/rung_05.so $(BUILD)/plugins/rung_07.so: PLUGIN_C := -Wno-unknown-pragmas reference/fd.c reference/plan.c
$(BUILD)/plugins/rung_05.so $(BUILD)/plugins/rung_07.so: reference/05_split_kv.c reference/07_lse_merge.c reference/fd.c reference/plan.c

# One compilation with libFuzzer's own flags: what reads a file, and what that needs.
FUZZ_CC      ?= clang
FUZZ_SECONDS ?= 60
FUZZ_C       := tests/fuzz/safetensors_fuzz.c tests/safetensors.c $(filter-out tests/dump_pair.c,$(wildcard tests/dump_*.c tests/gen*.c)) tests/instance.c tests/buffer.c tests/poison.c \
                tests/machine.c tests/text.c tests/data_path.c tests/claims_options.c $(filter-out tests/bound_check% tests/bound_text.c,$(wildcard tests/bound*.c)) reference/fd.c
$(BUILD)/safetensors_fuzz: $(FUZZ_C) $(wildcard tests/*.h reference/*.h)
	@mkdir -p $(@D)
	$(call say,FZ,$@)
	$(Q)$(FUZZ_CC) -std=c11 -O1 -g -ffp-contract=off $(WARNINGS) $(INCLUDES) -fsanitize=fuzzer,address,undefined \
	    -fno-sanitize-recover=undefined -DFD_BUILD_FLAGS='""' $(FUZZ_C) -o $@ -ljansson -lm

# The tables name what the wildcards found: table(file, array, prefix of the symbols, names).
define table
	@mkdir -p $(dir $(1))
	@{ echo '/* Written by the Makefile. */'; echo '#include "ladder.h"'; echo '#include "mutants.h"'; \
	for x in $(4); do echo "extern const fd_rung $(3)$$x;"; done; \
	echo "extern const fd_rung *const $(2)[];"; echo "extern const int $(2)_count;"; \
	echo "const fd_rung *const $(2)[] = {"; for x in $(4); do echo "    &$(3)$$x,"; done; \
	echo "    NULL};"; echo "const int $(2)_count = sizeof $(2) / sizeof *$(2) - 1;"; } > $(1)
endef

$(BUILD)/ladder.c: $(RUNGS) $(CUDA) Makefile $(BUILD)/sources | $(WAIT)
	$(call table,$@,fd_ladder,fd_rung_,$(basename $(notdir $(RUNGS) $(CUDA))))
	@echo 'const int fd_ladder_cpu_count = $(words $(RUNGS));' >> $@

$(BUILD)/hooked.c: $(CUDA) Makefile $(BUILD)/sources | $(WAIT)
	$(call table,$@,fd_hooked,fd_hooked_,$(basename $(notdir $(CUDA))))

$(BUILD)/mutants.c: $(MUTANTS) Makefile $(BUILD)/sources | $(WAIT)
	$(call table,$@,fd_mutants,fd_mutant_,$(basename $(notdir $(MUTANTS))))
	@{ for x in $(basename $(notdir $(MUTANTS))); do echo "extern const char fd_mutant_$${x}_change[];"; done; \
	echo "const char *const fd_mutant_files[] = {"; for x in $(MUTANTS); do echo "    \"$$x\","; done; echo "};"; \
	echo "const char *const fd_mutant_changes[] = {"; \
	for x in $(basename $(notdir $(MUTANTS))); do echo "    fd_mutant_$${x}_change,"; done; echo "};"; } >> $@

$(BUILD)/parents.c: $(RUNGS) Makefile $(BUILD)/sources | $(WAIT)
	$(call table,$@,fd_parents,fd_parent_,$(basename $(notdir $(RUNGS))))

# Mutants are made from the rungs as committed: who edits a rung still wants to know what the edit looks like.
PRISTINE := $(RUNGS:reference/%.c=$(BUILD)/pristine/%.c)
$(PRISTINE): $(BUILD)/pristine/%.c: reference/%.c FORCE | $(WAIT)
	@mkdir -p $(@D)
	@git show HEAD:./$< > $@.new 2>/dev/null || cat $< > $@.new
	@cmp -s $@.new $@ || cp $@.new $@
	@rm -f $@.new; cmp -s $< $@ || echo "note: $< differs from the commit; its mutants are made from the committed one"

$(PARENT_C): $(BUILD)/parents/%.c: $(BUILD)/pristine/%.c
	@mkdir -p $(@D)
	@sed 's/const fd_rung fd_rung_/const fd_rung fd_parent_/' $< > $@

# X.parent says, for make, which rung X depends on: a new rung makes no mutant anew.
$(BUILD)/mutants/%.c: tests/mutants/%.mutant tests/mutants/mutate.awk | $(PRISTINE) $(WAIT)
	@mkdir -p $(@D)
	$(call say,MU,$<)
	$(Q)awk -f tests/mutants/mutate.awk -v symbol=fd_mutant_$* -v target=$@ -v depends=$(@:.c=.parent) $< \
	    "$(BUILD)/pristine/$$(basename "$$(awk '$$1 == "parent:" { print $$2 }' $<)")" > $@

-include $(MUTANT_C:.c=.parent)
-include $(OBJECTS:.o=.d) $(FAULTS_O:.o=.d) $(SUITES:%.c=$(BUILD)/obj/%.d) $(BUILD)/obj/tests/main.d

# ---- Results and report ------------------------------------------------------------------------------------------

LIBM := $(BUILD)/libm_error.csv
RUN   = FD_LIBM_CACHE=$(LIBM) FD_COMMIT="$$(git rev-parse --short HEAD 2>/dev/null)" $(PROGRAM)

$(LIBM): $(PROGRAM)
	$(Q)$(RUN) exp --if-needed && touch $@

$(REPORT)/exp.txt: $(LIBM)
	@mkdir -p $(@D)
	$(Q)$(RUN) exp --if-needed > $@

# X.stamp: X.csv is up to date. The file itself keeps its time if nothing changed in it, and so do the figures then.
$(REPORT)/ladder.stamp: $(PROGRAM)
	@mkdir -p $(@D)
	$(Q)$(RUN) ladder --csv $(@D)/ladder.new > $(@D)/ladder.txt
	$(Q)cmp -s $(@D)/ladder.new $(@D)/ladder.csv && rm $(@D)/ladder.new || mv $(@D)/ladder.new $(@D)/ladder.csv
	@touch $@

# What has to be run again is found out by parts.sh, rung by rung. A failing verdict is a result: the page is written with
# it, and `make report` fails afterwards. What is timed comes last, when nothing else runs.
PARTS := verify mutants killtable bench splits decode
$(PARTS:%=$(REPORT)/%.stamp): $(REPORT)/%.stamp: $(PROGRAM) $(LIBM) data/cases.csv $(REPORT)/size plots/parts.sh | $(REPORT)/ladder.stamp
	$(call say,RE,$*)
	$(Q)FD_LIBM_CACHE=$(LIBM) FD_COMMIT="$$(git rev-parse --short HEAD 2>/dev/null)" sh plots/parts.sh $* $(BUILD) $(SIZE) && touch $@
$(REPORT)/mutants.stamp: | $(REPORT)/verify.stamp
$(REPORT)/killtable.stamp: | $(REPORT)/mutants.stamp
$(REPORT)/bench.stamp: | $(REPORT)/killtable.stamp
$(REPORT)/splits.stamp: | $(REPORT)/bench.stamp
$(REPORT)/decode.stamp: | $(REPORT)/splits.stamp

RESULTS := $(patsubst %,$(REPORT)/%.csv,ladder $(PARTS))
$(RESULTS): %.csv: %.stamp
	@:

$(REPORT)/plots.done: $(RESULTS) $(wildcard plots/* data/measured/h200/*.csv data/measured/peers/*.csv data/measured/*/adapter-*.csv)
	$(call say,PL,$(REPORT))
	$(Q)sh plots/plots.sh $(REPORT) && touch $@

$(REPORT)/index.html: $(REPORT)/plots.done $(REPORT)/exp.txt
	$(Q)sh plots/report.sh $(REPORT) $@
