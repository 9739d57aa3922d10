(* One exponential: fl(exp(fl(a - b))) for a shift b >= a. libm's exp, or a vector exp, enters as a hypothesis with its
   measured constants (H2, H3 of README.md); what is proved is what subtraction and exponential do together. *)
From Coq Require Import Reals Lra.
From FD Require Import Round.
Open Scope R_scope.

(* |fl(exp x) - exp x| <= eps exp x + eta_e, and eps_l for the logarithm. *)
Class functions := {
  eps : R;
  eta_e : R;
  eps_l : R;
  eps_range : 0 <= eps < 1;
  eta_e_nonneg : 0 <= eta_e;
  eps_l_nonneg : 0 <= eps_l;
}.

Record exps `{arithmetic} `{functions} (x r : R) : Prop := {
  exp_in_format : fmt r;
  exp_error : Rabs (r - exp x) <= eps * exp x + eta_e;
  exp_of_negative : x <= 0 -> 0 <= r <= 1;
  exp_of_0 : x = 0 -> r = 1;
}.

Section Exp.
Context {A : arithmetic} {B : functions}.

(* eps' of README.md: a relative error, moved into the exponent. *)
Definition eps' := - ln (1 - eps).

Lemma ln_factor k : Rabs k <= eps -> Rabs (ln (1 + k)) <= eps'.
Proof.
  intros K. assert (E := eps_range). apply abs_le in K. apply abs_le; unfold eps'.
  rewrite Ropp_involutive. split.
  - destruct (Req_dec k (- eps)) as [->|]; [right; f_equal; ring|]. left; apply ln_increasing; lra.
  - rewrite <- ln_Rinv by lra. assert (P : / (1 - eps) * (1 - eps) = 1) by (field; lra).
    assert (Q : 0 < / (1 - eps)) by (apply Rinv_0_lt_compat; lra).
    destruct (Rle_lt_or_eq_dec (1 + k) (/ (1 - eps))) as [L| ->]; [nra| |right; reflexivity].
    left; apply ln_increasing; lra.
Qed.

Lemma eps'_nonneg : 0 <= eps'.
Proof.
  assert (E := eps_range). eapply Rle_trans; [apply Rabs_pos|apply (ln_factor 0)]. rewrite Rabs_R0; lra.
Qed.

(* exp alone: the relative part goes into the exponent, the absolute part stays. *)
Lemma exps_split x r : exps x r -> exists z f, r = exp (x + z) + f /\ Rabs z <= eps' /\ Rabs f <= eta_e /\
  exp (x + z) <= (1 + eps) * exp x.
Proof.
  intros H. assert (E := eps_range). assert (P := exp_pos x). assert (X := exp_error _ _ H).
  destruct (split_error eps eta_e (exp x) r) as (k & f & K & F & ->).
  { lra. } { apply eta_e_nonneg. } { rewrite (Rabs_right (exp x)) by lra. exact X. }
  assert (K1 : - eps <= k <= eps) by now apply abs_le.
  assert (Q : exp (x + ln (1 + k)) = exp x * (1 + k)) by (rewrite exp_plus, exp_ln; lra).
  exists (ln (1 + k)), f; repeat split; [rewrite Q; ring|now apply ln_factor|exact F|].
  rewrite Q. nra.
Qed.

(* Theorem: a weight or a rescale factor, with its subtraction. The exponent is off by u (b - a) + eps', the result by
   eta_e besides; it lies in [0, 1], and is 1 where the maximum meets itself. *)
Theorem exp_step a b t r : a <= b -> rounds 0 (a - b) t -> exps t r ->
  (exists z f, r = exp (a - b + z) + f /\ Rabs z <= u * (b - a) + eps' /\ Rabs f <= eta_e /\ exp (a - b + z) <= 1 + eps)
  /\ 0 <= r <= 1 /\ (a = b -> r = 1).
Proof.
  intros L T X. assert (U := u_range). assert (E := eps_range).
  assert (N : t <= 0) by (apply (not_above_0 _ _ _ T); lra).
  split; [|split; [now apply (exp_of_negative _ _ X)|]].
  - destruct (rounds_split 0 _ _ (Rle_refl 0) T) as (d & f0 & D & F0 & Et).
    assert (f0 = 0) as -> by (apply abs_le in F0; lra).
    destruct (exps_split _ _ X) as (z & f & -> & Z & F & M).
    exists ((a - b) * d + z), f. replace (a - b + ((a - b) * d + z)) with (t + z) by (rewrite Et; ring).
    repeat split; [|exact F|].
    + eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult, (Rabs_left1 (a - b)) by lra.
      assert (Q := Rabs_pos d). nra.
    + assert (exp t <= 1).
      { rewrite <- exp_0. destruct (Req_dec t 0) as [->|]; [lra|]. left; apply exp_increasing; lra. }
      nra.
  - intros ->. replace (b - b) with 0 in T by ring. now apply (exp_of_0 _ _ X), (rounds_zero _ _ T).
Qed.

End Exp.
