/* text.c: see text.h. */
#include "text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define BROKEN UINT32_MAX

/* The code point of the UTF-8 sequence at `text`, and its length; BROKEN and 1 if it is none. */
static uint32_t code_point(const char *text, int *length)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* of a sequence of that length */
    const unsigned char *c = (const unsigned char *)text;
    const int n = c[0] < 0x80 ? 1 : c[0] < 0xc0 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf8 ? 4 : 0;
    uint32_t code = n < 2 ? c[0] : c[0] & (0x7fu >> n);
    *length = 1;
    for (int i = 1; i < n; i++) {
        if ((c[i] & 0xc0) != 0x80) {
            return BROKEN;
        }
        code = code << 6 | (c[i] & 0x3fu);
    }
    if (n == 0 || code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        return BROKEN;
    }
    *length = n;
    return code;
}

int fd_text_character(const char *text)
{
    int length;
    const uint32_t code = code_point(text, &length);
    const bool named =
        code == '\t' || code == '\n' || code == '\r' || (code >= 0x20 && code != BROKEN && (code | 1) != 0xffff);
    return named ? length : 0;
}

/* What a terminal obeys, or shows elsewhere than where it stands. */
static bool commands(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

void fd_text_clean(char *text)
{
    for (int length; *text != '\0'; text += length) {
        const uint32_t code = code_point(text, &length);
        for (int i = 0; (code == BROKEN || commands(code)) && i < length; i++) {
            text[i] = '?';
        }
    }
}

const char *fd_text_word(const char *path, char word[FD_TEXT_WORD])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    size_t used = 0;
    const bool quoted = *path == '\0' || path[strspn(path, plain)] != '\0';
    for (int length; *path != '\0'; path += length) {
        const uint32_t code = code_point(path, &length);
        const size_t bytes = *path == '\'' ? 4 : (size_t)length;
        if (code == BROKEN || commands(code) || used + bytes + 3 > FD_TEXT_WORD) {
            strcpy(word, "TARGET");
            return word;
        }
        memcpy(word + quoted + used, *path == '\'' ? "'\\''" : path, bytes);
        used += bytes;
    }
    used += quoted;
    if (quoted) {
        word[0] = word[used++] = '\'';
    }
    word[used] = '\0';
    return word;
}
