/* junit.h: text inside XML. */
#ifndef FD_JUNIT_H
#define FD_JUNIT_H

#include <stdio.h>

/* Writes any bytes as XML 1.0 text, good between tags and in attributes: UTF-8 as it is, markup as references, and what
 * XML has no name for (control characters, broken UTF-8) as \xNN. */
void fd_xml_text(FILE *file, const char *text);

#endif /* FD_JUNIT_H */
