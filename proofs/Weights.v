(* Section 4 of README.md: how far the weight of a key can be off at the root, whatever the number of rescales on its
   way; and why D >= 1. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree.
Import ListNotations.
Open Scope R_scope.

Section Weights.
Context {A : arithmetic} {B : functions}.

(* r = fl(exp(fl(a - b))). *)
Definition exp_of a b r := exists x, rounds 0 (a - b) x /\ exps x r.

(* H6 and H7: every weight and factor is such an exponential; shifts do not decrease on the way and start at or above
   the computed logit; parts that are added have the same shift. *)
Fixpoint shifts_ok t := match t with
  | Leaf i M w => shat i <= M /\ exp_of (shat i) M w
  | Add t t' => shifts_ok t /\ shifts_ok t' /\ shift t = shift t'
  | Rescale M a t | Normalise M a _ _ t => shifts_ok t /\ shift t <= M /\ exp_of (shift t) M a
  end.

(* The absolute error of a product of r computed exponentials: at most eta_e r (1 + eps)^(r - 1). *)
Fixpoint weight_abs r := match r with O => 0 | S r => (1 + eps) * weight_abs r + eta_e end.

Lemma weight_abs_bound r : 0 <= weight_abs r <= eta_e * INR r * (1 + eps) ^ (r - 1).
Proof.
  assert (E := eps_range). assert (H := eta_e_nonneg).
  induction r as [|r IH]; [simpl; lra|]. replace (S r - 1)%nat with r by lia. cbn [weight_abs].
  split; [nra|]. rewrite S_INR. destruct r as [|r]; [simpl in *; lra|].
  replace (S r - 1)%nat with r in IH by lia. assert (P : 1 <= (1 + eps) ^ S r) by (apply pow_R1_Rle; lra).
  cbn [pow] in *. nra.
Qed.

Definition path_ok M x := exists z e, pweight x = exp (logit (pkey x) - M + z) + e /\
  Rabs z <= Rabs (computed x - logit (pkey x)) + u * (M - computed x) + INR (met x) * eps' /\
  Rabs e <= weight_abs (met x) /\ 0 <= pweight x <= 1 /\ computed x <= M.

Lemma path_ok_rescaled m M a i j x : m <= M -> exp_of m M a -> path_ok m x -> path_ok M (move a 1 i j x).
Proof.
  intros L (t & T & X) (z & e & Ew & Hz & He & Hw & Hs).
  destruct (exp_step m M t a L T X) as [(y & f & Ea & Hy & Hf & Hm) [Ha _]].
  unfold path_ok. change (pkey (move a 1 i j x)) with (pkey x). change (computed (move a 1 i j x)) with (computed x).
  exists (y + z), (exp (m - M + y) * e + f * pweight x). cbn [move pweight met].
  repeat split; try lra.
  - replace (logit (pkey x) - M + (y + z)) with ((m - M + y) + (logit (pkey x) - m + z)) by ring.
    rewrite exp_plus. rewrite Ea at 1. rewrite Ew at 1. rewrite Ew. ring.
  - eapply Rle_trans; [apply Rabs_triang|]. rewrite S_INR. lra.
  - eapply Rle_trans; [apply Rabs_triang|]. cbn [weight_abs Nat.add]. rewrite !Rabs_mult.
    assert (P := exp_pos (m - M + y)). rewrite (Rabs_right (exp _)), (Rabs_right (pweight x)) by lra.
    assert (Q := Rabs_pos e). assert (Q' := Rabs_pos f). apply Rplus_le_compat; [nra|].
    assert (H := eta_e_nonneg). nra.
  - nra.
  - nra.
Qed.

(* Theorem: W_j = exp(s_j - M) e^z + omega with |z| <= |s^_j - s_j| + u (M - s^_j) + R_j eps': the u of all subtractions
   together counts once, because the exponents are <= 0 and add up to s^_j - M. *)
Theorem tree_weights t : shifts_ok t -> Forall (path_ok (shift t)) (paths t).
Proof.
  induction t as [i M w|t IH t' IH'|M a t IH|M a q b t IH]; cbn [shifts_ok shift paths]; intros H.
  - destruct H as (L & t & T & X). destruct (exp_step (shat i) M t w L T X) as [(y & f & E & Hy & Hf & Hm) [Hw _]].
    constructor; [|constructor]. exists (shat i - logit (ikey i) + y), f.
    unfold pkey, computed in *; cbn [pin pweight met].
    repeat split; try lra.
    + rewrite E at 1. f_equal; f_equal; ring.
    + eapply Rle_trans; [apply Rabs_triang|]. simpl. lra.
    + cbn [weight_abs]. lra.
  - destruct H as (H & H' & Es). specialize (IH H); specialize (IH' H'). rewrite <- Es in IH'.
    rewrite Forall_forall in *. intros x I. apply in_map_iff in I. destruct I as (y & <- & I).
    assert (K : path_ok (shift t) y) by (apply in_app_iff in I; destruct I; auto).
    destruct K as (z & e & K). exists z, e. unfold pkey, computed in *. cbn [move pin pweight met Nat.add].
    rewrite Rmult_1_l. exact K.
  - destruct H as (H & L & X). specialize (IH H). rewrite Forall_forall in *. intros x I.
    apply in_map_iff in I. destruct I as (y & <- & I). now apply (path_ok_rescaled (shift t)); auto.
  - destruct H as (H & L & X). specialize (IH H). rewrite Forall_forall in *. intros x I.
    apply in_map_iff in I. destruct I as (y & <- & I). now apply (path_ok_rescaled (shift t)); auto.
Qed.

Lemma shifts_unit_weights t : shifts_ok t -> unit_weights t.
Proof.
  induction t as [i M w|t IH t' IH'|M a t IH|M a q b t IH]; cbn [shifts_ok unit_weights]; intros H.
  - destruct H as (L & t & T & X). now apply (exp_step (shat i) M t w).
  - split; [apply IH|apply IH']; tauto.
  - destruct H as (H & L & t' & T & X). split; [now apply (exp_step (shift t) M t' a)|auto].
  - destruct H as (H & L & t' & T & X). split; [now apply (exp_step (shift t) M t' a)|auto].
Qed.

(* The key with the largest computed logit: all exponents on its way are 0. *)
Fixpoint has_top t := match t with
  | Leaf i M _ => shat i = M
  | Add t t' => has_top t \/ has_top t'
  | Rescale M _ t | Normalise M _ _ _ t => shift t = M /\ has_top t
  end.

(* It is there if the shift at the root is some key's computed logit, as for every kind of maximum. *)
Lemma top_exists t x : shifts_ok t -> In x (paths t) -> computed x = shift t -> has_top t.
Proof.
  revert x; induction t as [i M w|t IH t' IH'|M a t IH|M a q b t IH];
    cbn [shifts_ok shift paths has_top]; intros x H I E.
  - destruct I as [<-|[]]. exact E.
  - destruct H as (H & H' & Es). apply in_map_iff in I. destruct I as (y & <- & I). change (computed y = shift t) in E.
    apply in_app_iff in I. destruct I as [I|I]; [left; now apply (IH y)|right; apply (IH' y); congruence].
  - destruct H as (H & L & X). apply in_map_iff in I. destruct I as (y & <- & I). change (computed y = M) in E.
    destruct (proj1 (Forall_forall _ _) (tree_weights t H) y I) as (_ & _ & _ & _ & _ & _ & Le).
    assert (shift t = M) by lra. split; [assumption|]. apply (IH y); congruence.
  - destruct H as (H & L & X). apply in_map_iff in I. destruct I as (y & <- & I). change (computed y = M) in E.
    destruct (proj1 (Forall_forall _ _) (tree_weights t H) y I) as (_ & _ & _ & _ & _ & _ & Le).
    assert (shift t = M) by lra. split; [assumption|]. apply (IH y); congruence.
Qed.

(* Theorem: D >= 1. *)
Theorem denominator_at_least_1 t l o : run t l o -> shifts_ok t -> has_top t -> 1 <= l.
Proof.
  induction 1 as [i M w o X|t t' l l' o o' rl ro H IH H' IH' XL XO|i M w t l o rl ro H IH XL XO
    |M a t l o rl ro H IH XL XO|M a q b t l o w oc ro H IH Pl XL Lb XQ Q XO]; cbn [shifts_ok has_top]; intros S T.
  - destruct S as (L & t & Tt & X'). right; symmetry. now apply (exp_step (shat i) M t w).
  - destruct S as (S & S' & _).
    assert (P := proj2 (proj2 (proj2 (tree_sums _ _ _ H (shifts_unit_weights _ S))))).
    assert (P' := proj2 (proj2 (proj2 (tree_sums _ _ _ H' (shifts_unit_weights _ S'))))).
    apply (not_below_1 _ _ _ XL). destruct T as [T|T]; [specialize (IH S T)|specialize (IH' S' T)]; lra.
  - destruct S as (S & (L & t' & Tt & X') & _).
    assert (P := proj2 (proj2 (proj2 (tree_sums _ _ _ H (shifts_unit_weights _ S))))).
    destruct (exp_step (shat i) M t' w L Tt X') as [_ [Hw Hw1]].
    apply (not_below_1 _ _ _ XL). destruct T as [T|T]; [specialize (IH S T); lra|]. rewrite (Hw1 T). lra.
  - destruct S as (S & L & t' & Tt & X'). destruct T as [Es T]. specialize (IH S T).
    destruct (exp_step (shift t) M t' a L Tt X') as [_ [_ Ha]]. apply (not_below_1 _ _ _ XL). rewrite (Ha Es). lra.
  - destruct S as (S & L & t' & Tt & X'). destruct T as [Es T]. specialize (IH S T).
    destruct (exp_step (shift t) M t' a L Tt X') as [_ [_ Ha]]. apply (not_below_1 _ _ _ XL). rewrite (Ha Es). lra.
Qed.

End Weights.
