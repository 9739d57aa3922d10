(* The cut of a cache into splits, in the integers that the C code uses: split s holds the keys
   [s * size, min((s + 1) * size, n)). Every key lies in exactly one split, and no int64 overflows on the way.
   Everything is >= 0, where C's division and Coq's agree. *)
From Coq Require Import ZArith Lia.
Open Scope Z_scope.

Definition int64_max := 2 ^ 63 - 1.
Definition fits x := - 2 ^ 63 <= x <= int64_max.

Definition ceil_div n d := (n + d - 1) / d.
Definition round_up n tile := ceil_div n tile * tile.

Definition split_begin size n s := Z.min (s * size) n.
Definition split_end size n s := Z.min ((s + 1) * size) n.
Definition holds size n s j := split_begin size n s <= j < split_end size n s.

Lemma ceil_div_spec n d : 0 < d -> d * (ceil_div n d - 1) < n <= d * ceil_div n d.
Proof.
  intros D. unfold ceil_div. set (q := (n + d - 1) / d).
  assert (E := Z.div_mod (n + d - 1) d). assert (M := Z.mod_pos_bound (n + d - 1) d). fold q in E. nia.
Qed.

(* ---- A fixed split_size ---------------------------------------------------------------------------------------- *)

(* Theorem: a visible key is in one split and in no other: in number j / size. *)
Theorem key_in_one_split size n j s : 0 < size -> 0 <= j < n -> 0 <= s -> (holds size n s j <-> s = j / size).
Proof.
  intros P J S. unfold holds, split_begin, split_end.
  assert (E := Z.div_mod j size). assert (M := Z.mod_pos_bound j size).
  split; [intros H|intros ->]; [|nia].
  apply (Z.div_unique j size s (j - s * size)); [left; nia|ring].
Qed.

(* ... which exists: splits 0 .. ceil(n / size) - 1 cover the cache. *)
Theorem key_has_a_split size n j : 0 < size -> 0 <= j < n -> 0 <= j / size < ceil_div n size.
Proof.
  intros P J. assert (C := ceil_div_spec n size P).
  assert (E := Z.div_mod j size). assert (M := Z.mod_pos_bound j size). nia.
Qed.

(* No split among those holds nothing, and none behind them holds anything. *)
Theorem split_not_empty size n s : 0 < size -> 0 <= s ->
  (split_begin size n s < split_end size n s <-> s < ceil_div n size).
Proof.
  intros P S. assert (C := ceil_div_spec n size P). unfold split_begin, split_end. nia.
Qed.

(* A key that is not visible is in no split, whatever num_splits: a plan made for more keys stays valid. *)
Theorem no_key_beyond size n s j : holds size n s j -> 0 <= s -> 0 < size -> 0 <= j < n.
Proof. unfold holds, split_begin, split_end. nia. Qed.

(* Splits are adjacent, in order, all full but the last. *)
Theorem splits_adjacent size n s : split_end size n s = split_begin size n (s + 1).
Proof. reflexivity. Qed.

Theorem split_full size n s : 0 < size -> 0 <= s -> s + 1 < ceil_div n size ->
  split_end size n s - split_begin size n s = size.
Proof. intros P S L. assert (C := ceil_div_spec n size P). unfold split_begin, split_end. nia. Qed.

(* ---- A requested num_splits, and tiles ------------------------------------------------------------------------- *)

Lemma round_up_spec n tile : 0 < tile -> n <= round_up n tile < n + tile.
Proof. intros T. assert (C := ceil_div_spec n tile T). unfold round_up. nia. Qed.

Lemma round_up_multiple n tile : 0 < tile -> round_up n tile mod tile = 0.
Proof. intros T. apply Z.mod_mul. lia. Qed.

(* Theorem: with size = ceil(n / splits), rounded up to tiles or not, at most `splits` splits hold keys ... *)
Theorem enough_splits splits tile n : 0 < splits -> 0 < tile -> 0 < n ->
  let size := round_up (ceil_div n splits) tile in 0 < size /\ 0 < ceil_div n size <= splits.
Proof.
  intros S T N size. assert (C := ceil_div_spec n splits S).
  assert (R := round_up_spec (ceil_div n splits) tile T). fold size in R.
  assert (P : 0 < size) by nia. assert (D := ceil_div_spec n size P). nia.
Qed.

(* ... so every key is in exactly one split s < splits. The rest, if the rounding leaves any, are empty. *)
Theorem planned_partition splits tile n j : 0 < splits -> 0 < tile -> 0 <= j < n ->
  let size := round_up (ceil_div n splits) tile in exists! s, 0 <= s < splits /\ holds size n s j.
Proof.
  intros S T J size. destruct (enough_splits splits tile n S T) as [P B]; [lia|]. fold size in P, B.
  assert (H := key_has_a_split size n j P J).
  exists (j / size); split; [split; [lia|]|].
  - apply key_in_one_split; lia.
  - intros s [Hs Hh]. symmetry; apply (key_in_one_split size n j s); lia || exact Hh.
Qed.

(* ---- As reference/plan.c computes it: t tiles a split ---------------------------------------------------------- *)

(* C's way to round up, without n + d - 1. *)
Lemma divide_up_is_ceil n d : 0 <= n -> 0 < d -> n / d + (if n mod d =? 0 then 0 else 1) = ceil_div n d.
Proof.
  intros N D. assert (C := ceil_div_spec n d D). assert (E := Z.div_mod n d). assert (M := Z.mod_pos_bound n d).
  destruct (Z.eqb_spec (n mod d) 0); nia.
Qed.

Lemma ceil_div_unique n d q : 0 < d -> d * (q - 1) < n <= d * q -> ceil_div n d = q.
Proof. intros D H. assert (C := ceil_div_spec n d D). nia. Qed.

(* Theorem: the splits that hold a key, counted in tiles, are those counted in keys. *)
Theorem plan_counts_tiles n tile t : 0 < tile -> 0 < t -> ceil_div n (t * tile) = ceil_div (ceil_div n tile) t.
Proof.
  intros Ti T. assert (A := ceil_div_spec n tile Ti). assert (Q := ceil_div_spec (ceil_div n tile) t T).
  apply ceil_div_unique; nia.
Qed.

(* A requested num_splits gives the same size in whichever order one rounds up. *)
Theorem plan_request n tile splits : 0 < tile -> 0 < splits ->
  ceil_div (ceil_div n tile) splits * tile = round_up (ceil_div n splits) tile.
Proof.
  intros Ti S. unfold round_up. now rewrite <- !plan_counts_tiles, Z.mul_comm with (n := splits) by assumption.
Qed.

(* Theorem: planned for n keys, run on n' <= n: every key in exactly one of the planned splits; and none of them is
   empty at n keys, if their number is not a request. *)
Theorem plan_partition n n' tile t j : 0 < tile -> 0 < t -> n' <= n -> 0 <= j < n' ->
  exists! s, 0 <= s < ceil_div (ceil_div n tile) t /\ holds (t * tile) n' s j.
Proof.
  intros Ti T L J. rewrite <- plan_counts_tiles by assumption. assert (P : 0 < t * tile) by nia.
  assert (H := key_has_a_split (t * tile) n j P ltac:(lia)).
  exists (j / (t * tile)); split; [split; [lia|]|].
  - apply key_in_one_split; lia.
  - intros s [Hs Hh]. symmetry; apply (key_in_one_split (t * tile) n' j s); lia || exact Hh.
Qed.

Theorem plan_none_empty n tile t s : 0 < tile -> 0 < t -> 0 <= s < ceil_div (ceil_div n tile) t ->
  split_begin (t * tile) n s < split_end (t * tile) n s.
Proof.
  intros Ti T H. rewrite <- plan_counts_tiles in H by assumption. apply split_not_empty; nia.
Qed.

(* Without tiles every requested split holds a key exactly if (splits - 1) ceil(n / splits) < n. *)
Theorem none_empty_iff splits n : 0 < splits -> 0 < n ->
  let size := ceil_div n splits in ceil_div n size = splits <-> (splits - 1) * size < n.
Proof.
  intros S N size. assert (C := ceil_div_spec n splits S). fold size in C.
  assert (P : 0 < size) by nia. assert (D := ceil_div_spec n size P). nia.
Qed.

(* 5 splits of 16 keys: ceil(16 / 5) = 4 keys each, and the fifth is empty. A request can leave empty splits. *)
Example an_empty_split : ceil_div 16 5 = 4 /\ ceil_div 16 4 = 4 /\ split_begin 4 16 4 = split_end 4 16 4.
Proof. repeat split; reflexivity. Qed.

(* ---- No overflow ----------------------------------------------------------------------------------------------- *)

(* Theorem: with up to 2^61 keys and int32 splits and tile, every intermediate of the above fits an int64. (The
   contract has int64 keys and split sizes.) *)
Theorem no_overflow n splits tile s :
  0 <= n <= 2 ^ 61 -> 1 <= splits < 2 ^ 31 -> 1 <= tile < 2 ^ 31 -> 0 <= s < splits ->
  let size := round_up (ceil_div n splits) tile in
  fits (n + splits - 1) /\ fits (ceil_div n splits + tile - 1) /\ fits size /\ fits (s * size) /\ fits ((s + 1) * size).
Proof.
  intros N S T Hs size. assert (C := ceil_div_spec n splits ltac:(lia)).
  assert (R := round_up_spec (ceil_div n splits) tile ltac:(lia)). fold size in R.
  assert (c0 : 0 <= ceil_div n splits) by nia.
  assert (B : splits * size <= n + splits * tile) by nia.
  assert (Q : splits * tile < 2 ^ 62) by (change (2 ^ 62) with (2 ^ 31 * 2 ^ 31); nia).
  change (2 ^ 31) with 2147483648 in *. change (2 ^ 61) with 2305843009213693952 in *.
  change (2 ^ 62) with 4611686018427387904 in *.
  unfold fits, int64_max. change (2 ^ 63) with 9223372036854775808.
  repeat split; try nia.
Qed.
