(* What `flashdecode relations` tests, as theorems about the definition; and what a maximum as shift gives. *)
From Coq Require Import Reals Lra List.
From FD Require Import Sum Algebra.
Import ListNotations.
Open Scope R_scope.

(* ---- With the maximum as shift --------------------------------------------------------------------------------- *)

Definition above M (ks : list key) := (forall k, In k ks -> logit k <= M) /\ (exists k, In k ks /\ logit k = M).

Theorem maximum_exists ks : ks <> [] -> exists M, above M ks.
Proof.
  induction ks as [|k [|k' ks] IH]; intros N; [congruence| |].
  - exists (logit k); split; [intros j [->|[]]; lra|exists k; simpl; auto].
  - destruct IH as (M & A & j & I & E); [discriminate|]. exists (Rmax (logit k) M); split.
    + intros i [->|J]; [apply Rmax_l|]. eapply Rle_trans; [apply A; exact J|apply Rmax_r].
    + destruct (Rle_dec (logit k) M).
      * rewrite Rmax_right by assumption. exists j; split; [now right|exact E].
      * rewrite Rmax_left by lra. exists k; split; [now left|reflexivity].
Qed.

(* Theorem: exponents are <= 0, weights <= 1, and 1 <= l <= n: no overflow and no division by 0. *)
Theorem maximum_as_shift M ks : above M ks ->
  (forall k, In k ks -> logit k - M <= 0 /\ 0 < exp (logit k - M) <= 1) /\
  1 <= sum (fun k => exp (logit k - M)) ks <= INR (length ks).
Proof.
  intros [A (k0 & I0 & E0)].
  assert (W : forall k, In k ks -> logit k - M <= 0 /\ 0 < exp (logit k - M) <= 1).
  { intros k I. assert (logit k - M <= 0) by (specialize (A k I); lra).
    repeat split; [assumption|apply exp_pos|].
    rewrite <- exp_0. destruct (Req_dec (logit k - M) 0) as [->|]; [lra|]. left; apply exp_increasing; lra. }
  split; [exact W|split].
  - replace 1 with (exp (logit k0 - M)) by (rewrite E0, Rminus_diag_eq, exp_0; reflexivity).
    apply (sum_ge_term (fun k => exp (logit k - M))); [|exact I0]. intros; left; apply exp_pos.
  - replace (INR (length ks)) with (sum (fun _ : key => 1) ks) by (rewrite sum_const; ring).
    apply sum_le; intros k I; apply W, I.
Qed.

(* ---- What the relations test ----------------------------------------------------------------------------------- *)

(* The output is an average: between the smallest and the largest visible value. *)
Theorem convex_hull a b ks : ks <> [] -> (forall k, In k ks -> a <= value k <= b) -> a <= attention ks <= b.
Proof.
  intros N H. assert (P := mass_pos ks N).
  assert (B : a * mass ks <= moment ks <= b * mass ks).
  { unfold mass, moment; rewrite <- !sum_scal.
    split; apply sum_le; intros k I; specialize (H k I); assert (E := exp_pos (logit k)); nra. }
  unfold attention, Rdiv; split; apply (Rmult_le_reg_r (mass ks)); try exact P;
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra; apply B.
Qed.

Corollary constant_values a ks : ks <> [] -> (forall k, In k ks -> value k = a) -> attention ks = a.
Proof. intros N H. apply Rle_antisym; apply (convex_hull a a ks N); intros k I; rewrite (H k I); lra. Qed.

(* shifted-keys: a constant c added to every logit (a vector added to all keys): the same o, and lse + c. *)
Theorem shifted_keys c ks : ks <> [] ->
  attention (map (fun k => Key (logit k + c) (value k)) ks) = attention ks /\
  lse (map (fun k => Key (logit k + c) (value k)) ks) = lse ks + c.
Proof.
  intros N. assert (P := mass_pos ks N). assert (E := exp_pos c). unfold attention, lse.
  assert (Ms : mass (map (fun k => Key (logit k + c) (value k)) ks) = exp c * mass ks).
  { unfold mass; rewrite sum_map, <- sum_scal; apply sum_ext; intros; cbn. rewrite exp_plus; ring. }
  assert (Mo : moment (map (fun k => Key (logit k + c) (value k)) ks) = exp c * moment ks).
  { unfold moment; rewrite sum_map, <- sum_scal; apply sum_ext; intros; cbn. rewrite exp_plus; ring. }
  rewrite Ms, Mo; split; [field; split; lra|]. rewrite ln_mult, ln_exp by assumption. ring.
Qed.

(* duplicated: every token r times: the same o, and lse + ln r. (In any order: schedules_agree.) *)
Theorem duplicated r ks : ks <> [] -> (0 < r)%nat ->
  attention (concat (repeat ks r)) = attention ks /\ lse (concat (repeat ks r)) = lse ks + ln (INR r).
Proof.
  intros N H. assert (P := mass_pos ks N). assert (Q := lt_0_INR r H).
  assert (S : forall f : key -> R, sum f (concat (repeat ks r)) = INR r * sum f ks).
  { intros f. rewrite sum_concat. clear. induction r as [|r IH]; [simpl; ring|].
    cbn [repeat]. change (sum (sum f) (ks :: repeat ks r)) with (sum f ks + sum (sum f) (repeat ks r)).
    rewrite IH, S_INR. ring. }
  unfold attention, lse, mass, moment in *; rewrite !S; split; [field; split; lra|].
  rewrite ln_mult by assumption. ring.
Qed.

(* scaled-v, and more: the output is affine in the values. *)
Theorem affine_values a b ks : ks <> [] ->
  attention (map (fun k => Key (logit k) (a * value k + b)) ks) = a * attention ks + b.
Proof.
  intros N. assert (P := mass_pos ks N). unfold attention.
  assert (Ms : mass (map (fun k => Key (logit k) (a * value k + b)) ks) = mass ks)
    by (unfold mass; rewrite sum_map; reflexivity).
  assert (Mo : moment (map (fun k => Key (logit k) (a * value k + b)) ks) = a * moment ks + b * mass ks).
  { unfold moment, mass; rewrite sum_map, <- !sum_scal, <- sum_plus. apply sum_ext; intros; cbn; ring. }
  rewrite Ms, Mo. field; lra.
Qed.
