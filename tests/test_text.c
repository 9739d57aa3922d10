/* test_text.c: what strangers write becomes a line of text, and text stays what it is. */
#include <criterion/criterion.h>
#include <string.h>

#include "text.h"

static const char *cleaned(const char *text)
{
    static char line[128];
    strcpy(line, text);
    fd_text_clean(line);
    return line;
}

Test(text, text_stays)
{
    static const char *const good[] = {"", "plain ~", "\303\251", "\342\202\254", "\360\237\231\202", "\302\240"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_expect_str_eq(cleaned(good[i]), good[i]);
    }
}

Test(text, commands_to_a_terminal_do_not)
{
    cr_expect_str_eq(cleaned("a\033[31m\007\tb\r\n\177"), "a?[31m??b???");
    cr_expect_str_eq(cleaned("\302\233"), "??", "CSI as one character");
    cr_expect_str_eq(cleaned("\342\200\256\342\201\246"), "??????", "the direction of writing");
    cr_expect_str_eq(cleaned("\342\200\250"), "???", "a line's end");
}

Test(text, nor_does_what_is_no_utf8)
{
    cr_expect_str_eq(cleaned("\377\376x"), "??x");
    cr_expect_str_eq(cleaned("cut \342\202"), "cut ??", "cut within a character");
    cr_expect_str_eq(cleaned("\300\257"), "??", "longer than it need be");
    cr_expect_str_eq(cleaned("\355\240\200"), "???", "half of a pair of UTF-16");
    cr_expect_str_eq(cleaned("\364\220\200\200"), "????", "above the last character");
    cr_expect_str_eq(cleaned("\251\303a"), "??a");
}

Test(text, characters_have_lengths)
{
    cr_expect_eq(fd_text_character("a"), 1);
    cr_expect_eq(fd_text_character("\n"), 1);
    cr_expect_eq(fd_text_character("\303\251"), 2);
    cr_expect_eq(fd_text_character("\360\237\231\202"), 4);
    cr_expect_eq(fd_text_character("\033"), 0);
    cr_expect_eq(fd_text_character("\357\277\277"), 0, "U+FFFF, of which XML has no name");
    cr_expect_eq(fd_text_character("\303"), 0);
}

Test(text, a_path_is_one_word_of_a_command)
{
    static const struct {
        const char *path, *word;
    } paths[] = {{"build/lib_a-1.so", "build/lib_a-1.so"},
                 {"", "''"},
                 {"a b", "'a b'"},
                 {"$(x);`y`", "'$(x);`y`'"},
                 {"it's", "'it'\\''s'"},
                 {"\303\251", "'\303\251'"},
                 {"a\nb", "TARGET"},
                 {"\377", "TARGET"}};
    char word[FD_TEXT_WORD], path[2 * FD_TEXT_WORD];
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        cr_expect_str_eq(fd_text_word(paths[i].path, word), paths[i].word);
    }
    for (size_t n = FD_TEXT_WORD - 10; n < sizeof path; n++) {
        memset(path, '\'', n);
        path[n] = '\0';
        cr_expect_str_eq(fd_text_word(path, word), "TARGET");
        memset(path, 'a', n);
        cr_expect(strcmp(fd_text_word(path, word), path) == 0 || strcmp(word, "TARGET") == 0);
    }
}
