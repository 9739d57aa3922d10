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
