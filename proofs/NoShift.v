(* Without a shift (rung 01): weights are exponentials of the raw logits, and D need not be >= 1. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound.
Import ListNotations.
Open Scope R_scope.

Section NoShift.
Context {A : arithmetic} {B : functions}.

(* No subtraction, no rescale: a leaf's weight is fl(exp(logit)). *)
Fixpoint unshifted t := match t with
  | Leaf i M w => M = 0 /\ exps (shat i) w /\ 0 <= w
  | Add t t' => unshifted t /\ unshifted t'
  | Rescale _ _ _ | Normalise _ _ _ _ _ => False
  end.

Lemma unshifted_unit_weights t : unshifted t -> unit_weights t.
Proof. induction t; cbn; tauto. Qed.

Lemma unshifted_weights t : unshifted t -> Forall (fun x => exists z e, pweight x = exp (logit (pkey x) + z) + e /\
  Rabs z <= Rabs (computed x - logit (pkey x)) + eps' /\ Rabs e <= weight_abs (met x) /\ 0 <= pweight x) (paths t).
Proof.
  induction t as [i M w|t IH t' IH'| |]; cbn [unshifted paths]; intros H; try tauto.
  - destruct H as (_ & X & P). destruct (exps_split _ _ X) as (z & f & E & Hz & Hf & _).
    constructor; [|constructor]. exists (shat i - logit (ikey i) + z), f. unfold pkey, computed; cbn [pin pweight met].
    repeat split; try assumption.
    + rewrite E at 1. do 2 f_equal. ring.
    + eapply Rle_trans; [apply Rabs_triang|]. lra.
    + cbn [weight_abs]. lra.
  - destruct H as [H H']. specialize (IH H). specialize (IH' H'). rewrite Forall_forall in *.
    intros x I. apply in_map_iff in I. destruct I as (y & <- & I).
    unfold pkey, computed; cbn [move pin pweight met Nat.add]. rewrite Rmult_1_l.
    apply in_app_iff in I. destruct I as [I|I]; [exact (IH y I)|exact (IH' y I)].
Qed.

Section Unshifted.
Variables (t : tree) (l o : R) (zmax : path -> R).
Hypothesis ran : run t l o.
Hypothesis raw : unshifted t.
Hypothesis zmax_bound : forall x, In x (paths t) -> Rabs (computed x - logit (pkey x)) + eps' <= zmax x.

Notation xs := (terms zmax t).
Notation ks := (tree_keys t).

Lemma raw_weight_ok : Forall (weight_ok 0) xs.
Proof.
  apply Forall_forall; intros y I. apply in_map_iff in I. destruct I as (x & <- & I).
  destruct (proj1 (Forall_forall _ _) (unshifted_weights t raw) x I) as (z & e & E & Hz & He & Hw).
  exists z, e. unfold s; cbn [term_key W Z f]. rewrite Rminus_0_r. specialize (zmax_bound x I). repeat split; lra.
Qed.

Lemma raw_sums : Rabs (o - sum (fun x => W x * v x) xs) <= sum (fun x => W x * (g (hN x) * Rabs (v x))) xs + EN t /\
  Rabs (l - sum W xs) <= sum (fun x => W x * g (hD x)) xs + ED t /\ sum (fun x => W x * (1 - u) ^ hD x) xs - ED t <= l.
Proof.
  destruct (tree_sums t l o ran (unshifted_unit_weights t raw)) as (N & D & L & _).
  unfold terms; rewrite !sum_map. repeat split; assumption.
Qed.

(* D is at least exp(lse) times F's denominator: what replaces D >= 1. *)
Theorem no_shift_denominator : mass ks * (Fden xs - Omega xs 0 (ED t)) <= l.
Proof.
  destruct raw_sums as (N & D & L). rewrite <- (terms_keys zmax).
  assert (Q := den_at_least xs (terms_not_empty zmax t) 0 l (ED t) raw_weight_ok).
  rewrite Ropp_0, exp_0, Rmult_1_r in Q. now apply Q.
Qed.

(* Theorem (o) without a shift: as sharp_bound, with L_j = 0 and R_j = 1. *)
Theorem no_shift_bound r : 0 < Fden xs - Omega xs 0 (ED t) -> rounds eta (o / l) r ->
  Rabs (r - attention ks) <= (1 + u) * (Fnum xs / (Fden xs - Omega xs 0 (ED t)) + V xs (EN t) (ED t) / l)
    + u * Rabs (attention ks) + eta.
Proof.
  intros P X. destruct raw_sums as (N & D & L).
  destruct (EN_ED_nonneg t l o ran (unshifted_unit_weights t raw)) as [E1 E2].
  assert (Q := no_shift_denominator). assert (Pm := mass_pos ks).
  assert (Hl : 0 < l).
  { eapply Rlt_le_trans; [|exact Q]. apply Rmult_lt_0_compat; [|exact P]. apply Pm.
    unfold tree_keys; intros C. now apply map_eq_nil, paths_not_empty in C. }
  rewrite <- (terms_keys zmax).
  apply (output_error xs (terms_not_empty zmax t) 0 o l (EN t) (ED t)); try assumption. apply raw_weight_ok.
Qed.

(* Theorem (lse) without a shift: r = fl(ln D), no sum behind it. *)
Theorem no_shift_lse r : 0 < Fden xs - Omega xs 0 (ED t) -> Rabs (r - ln l) <= eps_l * Rabs (ln l) ->
  let E := E0 xs 0 (ED t) in Rabs (r - lse ks) <= E + eps_l * (Rabs (lse ks) + E).
Proof.
  intros P Y E. destruct raw_sums as (N & D & L). assert (Q := no_shift_denominator). assert (Pm := mass_pos ks).
  assert (Pl := eps_l_nonneg).
  assert (Hl : 0 < l).
  { eapply Rlt_le_trans; [|exact Q]. apply Rmult_lt_0_compat; [|exact P]. apply Pm.
    unfold tree_keys; intros C. now apply map_eq_nil, paths_not_empty in C. }
  assert (T : Rabs (ln l - (lse (map term_key xs) - 0)) <= E)
    by (apply (log_error xs (terms_not_empty zmax t) 0 l (ED t)); try assumption; apply raw_weight_ok).
  rewrite terms_keys, Rminus_0_r in T.
  assert (K : Rabs (ln l) <= Rabs (lse ks) + E).
  { replace (ln l) with ((ln l - lse ks) + lse ks) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra. }
  replace (r - lse ks) with ((r - ln l) + (ln l - lse ks)) by ring. eapply Rle_trans; [apply Rabs_triang|].
  assert (K' := Rmult_le_compat_l _ _ _ Pl K). lra.
Qed.

End Unshifted.
End NoShift.
