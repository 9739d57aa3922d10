/* Two processes return from run(). */
#include <unistd.h>
#define AFTER(p, c) (void)!fork()
#include "plugin.h"
