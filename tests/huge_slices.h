/* huge_slices.h: a small problem, spread over more than 2^32 elements: where everything lies.
 *
 * Along the far axis a tensor falls into slices, compact in themselves. Slice i begins i steps behind slice 0, a step being
 * so large that the last one lies past 2^32 elements. All steps are multiples of one record, and every tensor has a place
 * of its own within a record: so slices of different tensors never meet, and neither do those places to which an offset
 * that was cut to 32 bits would lead. Those are filled with NaN and looked at afterwards: a row read there is no number, one
 * written there is found. Negative ones lie in the room before slice 0. */
#ifndef FD_HUGE_SLICES_H
#define FD_HUGE_SLICES_H

#include "huge.h"

#define FD_FAR_ROOM ((int64_t)1 << 33) /* bytes before slice 0: 2^31 elements of 4 bytes */
#define FD_FAR_PARTS 6
#define FD_FAR_CUTS 4

typedef struct fd_far_part { /* a tensor */
    const fd_tensor *from;   /* in the instance */
    fd_tensor *to;
    int64_t extent[4];
    int dim; /* the far one; -1: it has none, and there is one slice */
    bool output;
    int64_t place, step, slices, slice_bytes, element; /* in bytes but for the count */
    unsigned char *image;                              /* [slice_bytes] a slice on its way */
} fd_far_part;

typedef struct fd_far {
    fd_stretch memory;
    fd_problem problem;
    fd_far_part parts[FD_FAR_PARTS];
    int64_t behind; /* bytes of the stretch from slice 0 on */
} fd_far;

/* Tensors, extents and far dimensions of the instance's problem; places, steps and strides. FD_OK, FD_NO_MEMORY, or
 * FD_INVALID: a slice of all tensors is more than a record. */
void fd_far_name(fd_far *f, const fd_instance *x, enum fd_huge_axis axis);
fd_status fd_far_place(fd_far *f, int64_t kv_len, char *why, size_t n);

/* Byte of the stretch at which the tensor's slice `offset` bytes behind slice 0 begins. */
size_t fd_far_at(const fd_far_part *t, int64_t offset);

/* Where 32 bits would take slice i, as a byte or element offset, unsigned or signed: [FD_FAR_CUTS]. Is a slice there? */
void fd_far_cuts(const fd_far_part *t, int64_t i, int64_t cut[FD_FAR_CUTS]);
bool fd_far_is_slice(const fd_far_part *t, int64_t offset);

/* Called with the offsets, in bytes, of each element of slice i: in the compact tensor, and in the slice. */
typedef void fd_far_visitor(void *data, const fd_far_part *t, const int64_t index[4], int64_t compact, int64_t within);
void fd_far_visit(const fd_far_part *t, int64_t i, fd_far_visitor *call, void *data);

/* Slice i into its image: an input's elements, all ones between them and for an output. */
void fd_far_draw(const fd_far_part *t, int64_t i);

#endif /* FD_HUGE_SLICES_H */
