/* text.h: strings of strangers (names, reasons, paths, what a plug-in prints) before they reach a terminal or a file. */
#ifndef FD_TEXT_H
#define FD_TEXT_H

/* Bytes of the character that `text` begins with: 1 to 4. 0: it begins with none that is UTF-8 and XML 1.0 has a name for,
 * which leaves out most control characters. */
int fd_text_character(const char *text);

/* Makes a line of it: each byte that is no UTF-8, each control character and each mark that turns the direction of
 * writing becomes '?'. The length stays. */
void fd_text_clean(char *text);

#endif /* FD_TEXT_H */
