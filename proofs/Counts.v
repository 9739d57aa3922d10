(* Sections 3 and 6 of README.md: the counts of roundings of a tree, and what underflow adds, in closed form. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound.
Import ListNotations.
Open Scope R_scope.

(* The most additions, rescales and normalised levels on any key's way. *)
Fixpoint adds t : nat := match t with
  | Leaf _ _ _ => 0 | Add t t' => S (Nat.max (adds t) (adds t')) | Rescale _ _ t | Normalise _ _ _ _ t => adds t end.
Fixpoint rescales t : nat := match t with
  | Leaf _ _ _ => 0 | Add t t' => Nat.max (rescales t) (rescales t')
  | Rescale _ _ t | Normalise _ _ _ _ t => S (rescales t) end.
Fixpoint norms t : nat := match t with
  | Leaf _ _ _ => 0 | Add t t' => Nat.max (norms t) (norms t') | Rescale _ _ t => norms t
  | Normalise _ _ _ _ t => S (norms t) end.

(* Theorem: hN_j <= A + R_j + 2 (normalised levels) and hD_j <= A + R_j - 1. *)
Theorem counts t : Forall (fun x => up x <= adds t + met x + 2 * norms t /\ S (down x) <= adds t + met x
  /\ 1 <= met x <= S (rescales t))%nat (paths t).
Proof.
  induction t as [i M w|t IH t' IH'|M a t IH|M a q b t IH]; cbn [paths adds norms rescales].
  - constructor; [simpl; lia|constructor].
  - rewrite Forall_forall in *. intros x I. apply in_map_iff in I. destruct I as (y & <- & I). simpl.
    apply in_app_iff in I. destruct I as [I|I]; [specialize (IH y I)|specialize (IH' y I)]; lia.
  - rewrite Forall_forall in *. intros x I. apply in_map_iff in I. destruct I as (y & <- & I). simpl.
    specialize (IH y I); lia.
  - rewrite Forall_forall in *. intros x I. apply in_map_iff in I. destruct I as (y & <- & I). simpl.
    specialize (IH y I); lia.
Qed.

Section Counts.
Context {A : arithmetic} {B : functions}.

(* ---- Underflow -------------------------------------------------------------------------------------------------- *)

(* n keys; X rescaled parts; [stored] bounds what a normalised part can pass on: its size q and its a l. *)
Fixpoint keys_in t : R := match t with
  | Leaf _ _ _ => 1 | Add t t' => keys_in t + keys_in t' | Rescale _ _ t | Normalise _ _ _ _ t => keys_in t end.
Fixpoint rescaled t : R := match t with
  | Leaf _ _ _ => 0 | Add t t' => rescaled t + rescaled t' | Rescale _ _ t | Normalise _ _ _ _ t => 1 + rescaled t end.
Fixpoint stored t : R := match t with
  | Leaf _ _ _ => 0 | Add t t' => stored t + stored t' | Rescale _ _ t => stored t
  | Normalise _ _ q b t => q + b + stored t end.

Lemma keys_in_length t : keys_in t = INR (length (paths t)).
Proof.
  induction t as [i M w|t IH t' IH'|M a t IH|M a q b t IH]; cbn [keys_in paths]; rewrite ?map_length; try assumption.
  - reflexivity.
  - now rewrite app_length, plus_INR, IH, IH'.
Qed.

Lemma keys_in_1 t : 1 <= keys_in t.
Proof. induction t; simpl; lra. Qed.

Lemma rescaled_nonneg t : 0 <= rescaled t.
Proof. induction t; simpl; lra. Qed.

Lemma stored_nonneg t l o : run t l o -> unit_weights t -> 0 <= stored t.
Proof.
  induction 1 as [i M w o X|t t' l l' o o' rl ro H IH H' IH' XL XO|i M w t l o rl ro H IH XL XO
    |M a t l o rl ro H IH XL XO|M a q b t l o w oc ro H IH P XL Lb XQ Q XO]; cbn [stored unit_weights]; intros U.
  - lra.
  - destruct U; specialize (IH ltac:(assumption)); specialize (IH' ltac:(assumption)); lra.
  - destruct U; specialize (IH ltac:(assumption)); lra.
  - apply IH; tauto.
  - destruct U as [Ha U]. specialize (IH U). assert (0 <= q) by (eapply Rle_trans; [apply Rabs_pos|exact Q]). nra.
Qed.

(* The longest way, in roundings. *)
Definition ups t := (1 + adds t + rescales t + 2 * norms t)%nat.
Definition downs t := (adds t + rescales t)%nat.

Lemma pow_step h k x : (S h <= k)%nat -> 0 <= x -> (1 + u) * ((1 + u) ^ h * x) <= (1 + u) ^ k * x.
Proof.
  intros L P. assert (M := up_mono _ _ L). simpl in M. rewrite <- Rmult_assoc. now apply Rmult_le_compat_r.
Qed.

Lemma pow_grow h k x : (h <= k)%nat -> 0 <= x -> (1 + u) ^ h * x <= (1 + u) ^ k * x.
Proof. intros L P. apply Rmult_le_compat_r; [exact P|now apply up_mono]. Qed.

Lemma grow_1 k x : 0 <= x -> x <= (1 + u) ^ k * x.
Proof. intros P. assert (M := up_ge_1 k). nra. Qed.

Theorem ED_bound t : ED t <= (1 + u) ^ downs t * (eta * rescaled t).
Proof.
  assert (U := u_range). assert (P := eta_nonneg).
  assert (R : forall t, 0 <= eta * rescaled t) by (intros; apply Rmult_le_pos; [exact P|apply rescaled_nonneg]).
  induction t as [i M w|t IH t' IH'|M a t IH|M a q b t IH]; cbn [ED rescaled].
  - rewrite Rmult_0_r, Rmult_0_r; lra.
  - assert (H := pow_step (downs t) (downs (Add t t')) _ ltac:(unfold downs; simpl; lia) (R t)).
    assert (H' := pow_step (downs t') (downs (Add t t')) _ ltac:(unfold downs; simpl; lia) (R t')). nra.
  - assert (H := pow_step (downs t) (downs (Rescale M a t)) _ ltac:(unfold downs; simpl; lia) (R t)).
    assert (G := grow_1 (downs (Rescale M a t)) eta P). nra.
  - assert (H := pow_step (downs t) (downs (Normalise M a q b t)) _ ltac:(unfold downs; simpl; lia) (R t)).
    assert (G := grow_1 (downs (Normalise M a q b t)) eta P). nra.
Qed.

Definition EN_closed t := eta * (keys_in t + rescaled t + stored t) + oadd * (keys_in t - 1).

Lemma EN_closed_nonneg t l o : run t l o -> unit_weights t -> 0 <= EN_closed t.
Proof.
  intros Hr Hu. assert (P := eta_nonneg). assert (P' := oadd_nonneg).
  assert (K := keys_in_1 t). assert (X := rescaled_nonneg t). assert (S := stored_nonneg t l o Hr Hu).
  apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra.
Qed.

Theorem EN_bound t l o : run t l o -> unit_weights t -> EN t <= (1 + u) ^ ups t * EN_closed t.
Proof.
  assert (U := u_range). assert (P := eta_nonneg). assert (P' := oadd_nonneg).
  assert (Step : forall t l o k, run t l o -> unit_weights t -> EN t <= (1 + u) ^ ups t * EN_closed t ->
    (S (ups t) <= k)%nat -> (1 + u) * EN t <= (1 + u) ^ k * EN_closed t).
  { intros s l' o' k Hr Hu IH L. assert (Z := EN_closed_nonneg s l' o' Hr Hu).
    eapply Rle_trans; [|apply (pow_step (ups s) k _ L Z)]. apply Rmult_le_compat_l; lra. }
  induction 1 as [i M w o X|t t' l l' o o' rl ro H IH H' IH' XL XO|i M w t l o rl ro H IH XL XO
    |M a t l o rl ro H IH XL XO|M a q b t l o w oc ro H IH Pl XL Lb XQ Q XO]; cbn [unit_weights]; intros Hu.
  - unfold EN_closed; cbn [EN keys_in rescaled stored]. assert (G := grow_1 (ups (Leaf i M w)) eta P). lra.
  - destruct Hu as [U1 U2]. set (k := ups (Add t t')).
    assert (S1 := Step t l o k H U1 (IH U1) ltac:(unfold k, ups; simpl; lia)).
    assert (S2 := Step t' l' o' k H' U2 (IH' U2) ltac:(unfold k, ups; simpl; lia)).
    assert (G := grow_1 k oadd P'). unfold EN_closed in *; cbn [EN keys_in rescaled stored]. lra.
  - destruct Hu as [U1 U2]. set (k0 := ups (Add t (Leaf i M w))).
    assert (S1 := Step t l o k0 H U1 (IH U1) ltac:(unfold k0, ups; simpl; lia)).
    assert (S2 := pow_step 0 k0 eta ltac:(unfold k0, ups; simpl; lia) P).
    assert (G := grow_1 k0 oadd P'). unfold EN_closed in *; cbn [EN keys_in rescaled stored]. simpl (_ ^ 0) in S2. lra.
  - destruct Hu as [_ U1]. set (k := ups (Rescale M a t)).
    assert (S1 := Step t l o k H U1 (IH U1) ltac:(unfold k, ups; simpl; lia)).
    assert (G := grow_1 k eta P). unfold EN_closed in *; cbn [EN keys_in rescaled stored]. lra.
  - destruct Hu as [Ha U1]. set (k := ups (Normalise M a q b t)).
    assert (L : (3 + ups t <= k)%nat) by (unfold k, ups; simpl; lia).
    assert (Z := EN_closed_nonneg t l o H U1).
    assert (S1 : (1 + u) ^ 3 * EN t <= (1 + u) ^ k * EN_closed t).
    { apply Rle_trans with ((1 + u) ^ 3 * ((1 + u) ^ ups t * EN_closed t)).
      - apply Rmult_le_compat_l; [apply pow_le; lra|now apply IH].
      - rewrite <- Rmult_assoc, <- pow_add. now apply pow_grow. }
    assert (Hb : 0 <= eta * b) by (apply Rmult_le_pos; [exact P|]; nra).
    assert (Hq : 0 <= eta * q) by (apply Rmult_le_pos; [exact P|]; eapply Rle_trans; [apply Rabs_pos|exact Q]).
    assert (S2 := pow_grow 2 k _ ltac:(lia) Hb). assert (S3 := pow_grow 1 k _ ltac:(lia) Hq).
    assert (G := grow_1 k eta P). rewrite pow_1 in S3.
    unfold EN_closed in *; cbn [EN keys_in rescaled stored]. lra.
Qed.

End Counts.
