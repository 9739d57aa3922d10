/* relation_cases.c: the cases on which relations are asked. */
#include "metamorph.h"

/* Small, and different in what can go wrong: ragged, dtypes, splits, peaks, exact answers, offsets, needles. */
const char *const fd_relation_cases[] = {
    "gaussian/fff/h6:2/d40/n5+0+0+300+0+64+65+1/s64",
    "gaussian/fff/h6:2/d40/n513+512+511",
    "gaussian/fff/h6:2/d64/n257/s7",
    "gaussian/hhh/h6:2/d64/n257/s100",
    "gaussian/bbb/h4:2/d96/64/n97",
    "gaussian/hhf/h4:1/d64/n65",
    "gaussian/hhh/h8:2/d128/n130+1+65",
    "peaky:8/fff/h4:1/d64/n65",
    "flat-integer/fff/h6:2/d40/n64+0+256+1/s32/bhsd",
    "selector/fff/h16:8/d8/n300+0+1+17+299/s64",
    "negative:-120/fff/h4:1/d64/n65",
    "ragged-spike/fff/h4:2/d64/n578+65+0+129/s64/bhsd",
    "ramp:ascending/fff/h4:1/d64/n65",
    "tied/bbb/h4:1/d64/n65",
    "offset:3584/fff/h4:1/d64/n65",
    "needle:every/fff/h33:33/d8/n33/s7",
    "sink/fff/h8:2/d64/n65/s100",
    "gaussian/fff/h6:2q5c/d40/n65/s64",
    "gaussian/fff/h6:2q4c/d40/n0+3+300+4+1+65/s64/bhsd",
};
const int fd_relation_case_count = sizeof fd_relation_cases / sizeof *fd_relation_cases;
