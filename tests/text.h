/* text.h: strings of strangers (names, reasons, paths, what a plug-in prints) before they reach a terminal or a file. */
#ifndef FD_TEXT_H
#define FD_TEXT_H

/* Bytes of the character that `text` begins with: 1 to 4. 0: it begins with none that is UTF-8 and XML 1.0 has a name for,
 * which leaves out most control characters. */
int fd_text_character(const char *text);

/* Makes a line of it: each byte that is no UTF-8, each control character and each mark that turns the direction of
 * writing becomes '?'. The length stays. */
void fd_text_clean(char *text);

#define FD_TEXT_WORD 200 /* bytes of a word that fits a command to be replayed */

/* A path as one word of a shell's command, quoted where that is needed. "TARGET" if it does not fit, or if a line cannot
 * show it. Returns word. */
const char *fd_text_word(const char *path, char word[FD_TEXT_WORD]);

#endif /* FD_TEXT_H */
