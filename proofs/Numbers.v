(* The coarse constant in numbers, binary32, by interval arithmetic. *)
From Coq Require Import Reals Lra Lia.
From Interval Require Import Tactic.
From FD Require Import Round Float Dot Exp Binary32 Coarse.
Open Scope R_scope.

Definition gamma32 z h h' om := @gamma binary32 z h h' om.

Lemma gamma32_formula z h h' om : gamma32 z h h' om =
  (2 * (exp z - 1) + exp z * ((1 + / 2 ^ 24) ^ h - 1 + ((1 + / 2 ^ 24) ^ h' - 1)))
  / (exp (- z) * (1 - / 2 ^ 24) ^ h' - om).
Proof. unfold gamma32, gamma, g. now rewrite (proj1 binary32_constants). Qed.

(* Z_j for head_dim 128, |sm_scale| <= 1, a_j <= 16, a logit at most 64 below the largest, and exp correctly rounded. *)
Definition example_z scale a gap := let e := @logit_error binary32 128 128 scale a in
  e + @u binary32 * (gap + e + e) + 2 * @eps' correctly_rounded.

Example z_in_numbers scale a gap : Rabs scale <= 1 -> 0 <= a <= 16 -> 0 <= gap <= 64 ->
  example_z scale a gap <= 128 / 10 ^ 6.
Proof.
  intros Hs Ha Hg. unfold example_z, logit_error, g, eps'. cbn [eps correctly_rounded].
  rewrite (proj1 binary32_constants), (proj2 binary32_constants). simpl (INR 128).
  assert (P := Rabs_pos scale). set (sc := Rabs scale) in *. clearbody sc.
  interval with (i_prec 60).
Qed.

(* 4096 keys with such logits: the constant in one pass (rung 02), in 16 splits of 256 and in 64 splits of 64 (rung 05,
   h = C + K + 2). Splitting the cache divides what the sums contribute; what Z contributes stays. *)
Example one_pass : gamma32 (128 / 10 ^ 6) 4096 4095 (/ 2 ^ 60) <= 75 / 10 ^ 5.
Proof. rewrite gamma32_formula. interval with (i_prec 60). Qed.

Example sixteen_splits : gamma32 (128 / 10 ^ 6) 274 271 (/ 2 ^ 60) <= 29 / 10 ^ 5.
Proof. rewrite gamma32_formula. interval with (i_prec 60). Qed.

Example sixty_four_splits : gamma32 (128 / 10 ^ 6) 130 127 (/ 2 ^ 60) <= 28 / 10 ^ 5.
Proof. rewrite gamma32_formula. interval with (i_prec 60). Qed.
