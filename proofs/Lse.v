(* Section 7 of README.md: (lse) from what the judge knows. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound Counts PassLine.
Import ListNotations.
Open Scope R_scope.

Section Lse.
Context {A : arithmetic} {B : functions}.

Section Stated.
Variables (ds : list datum) (top E : R) (a nl rs : nat) (X : R).
Let xs := readme_terms top E a nl ds.
Definition readme_Omega_up := (1 + u) ^ (a + rs) * (sum f xs + eta * X) * exp (top + E - lse (map dkey ds)).
Definition readme_E0 := Rmax (ln (Fup xs + readme_Omega_up)) (- ln (readme_den ds top E a nl rs X)).
Definition readme_E1 := readme_E0 + eps_l * (lse (map dkey ds) - top + E + readme_E0).
Definition readme_lse_bound := readme_E1 + u * (Rabs (lse (map dkey ds)) + readme_E1).
End Stated.

Variables (t : tree) (l o : R) (e : path -> R) (top E : R).
Hypothesis ran : run t l o.
Hypothesis shifts : shifts_ok t.
Hypothesis top_key : exists x, In x (paths t) /\ computed x = shift t.
Hypothesis top_logit : exists x, In x (paths t) /\ logit (pkey x) = top.
Hypothesis logits : forall x, In x (paths t) -> Rabs (computed x - logit (pkey x)) <= e x.
Hypothesis E_max : forall x, In x (paths t) -> e x - (top - logit (pkey x)) <= E.

Notation ds := (data t e).
Notation xs := (terms (README_Z e top E) t).
Notation ys := (readme_terms top E (adds t) (norms t) ds).
Notation Lse := (lse (map dkey ds)).

(* The last shift is within E of the largest exact logit, which is at most lse. *)
Lemma lse_to_shift : Rabs (Lse - shift t) <= Lse - top + E.
Proof.
  assert (S := shift_at_most t e top E top_key logits E_max). destruct top_logit as (x & I & Ex).
  destruct (proj1 (Forall_forall _ _) (tree_weights t shifts) x I) as (_ & _ & _ & _ & _ & _ & Le).
  assert (H := logits x I). apply abs_le in H. assert (H' := E_max x I).
  assert (T : top <= Lse).
  { rewrite data_keys. rewrite <- (ln_exp top). unfold lse.
    assert (Q : exp top <= mass (tree_keys t)).
    { rewrite <- Ex. apply (sum_ge_term (fun k => exp (logit k))); [intros; left; apply exp_pos|].
      unfold tree_keys. now apply in_map. }
    destruct (Rle_lt_or_eq_dec _ _ Q) as [K|K]; [left; apply ln_increasing; [apply exp_pos|exact K]|].
    now rewrite K; right. }
  apply abs_le. lra.
Qed.

Lemma Omega_up_stated : 0 <= Omega_up xs (shift t) (ED t)
  <= readme_Omega_up ds top E (adds t) (norms t) (rescales t) (rescaled t).
Proof.
  unfold Omega_up, readme_Omega_up. rewrite terms_keys, <- (data_keys t e).
  assert (S := shift_at_most t e top E top_key logits E_max).
  destruct (EN_ED_nonneg t l o ran (shifts_unit_weights t shifts)) as [_ ED0]. assert (D := ED_bound t).
  assert (F0 : 0 <= sum (fun x => f x * (1 + u) ^ hD x) xs).
  { apply sum_nonneg; intros x I. apply Rmult_le_pos; [now apply (f_nonneg_terms t e top E)|].
    assert (G := up_ge_1 (hD x)); lra. }
  assert (F1 : sum (fun x => f x * (1 + u) ^ hD x) xs <= (1 + u) ^ (adds t + rescales t) * sum f ys).
  { apply Rle_trans with ((1 + u) ^ (adds t + rescales t) * sum f xs).
    - rewrite <- sum_scal. apply sum_le; intros x I. rewrite Rmult_comm.
      apply Rmult_le_compat_r; [now apply (f_nonneg_terms t e top E)|]. apply up_mono.
      apply in_map_iff in I. destruct I as (y & <- & I). cbn [hD].
      assert (C := proj1 (Forall_forall _ _) (counts t) y I). cbv beta in C. lia.
    - apply Rmult_le_compat_l; [assert (G := up_ge_1 (adds t + rescales t)); lra|].
      exact (f_grows _ _ (terms_le t e top E)). }
  unfold downs in D. assert (Ex := exp_le (shift t - Lse) (top + E - Lse) ltac:(lra)).
  assert (P := exp_pos (shift t - Lse)).
  split; [apply Rmult_le_pos; lra|]. apply Rmult_le_compat; lra.
Qed.

(* Theorem (lse): r = fl(m + fl(ln D)). *)
Theorem lse_stated y r : 0 < readme_den ds top E (adds t) (norms t) (rescales t) (rescaled t) ->
  Rabs (y - ln l) <= eps_l * Rabs (ln l) -> rounds 0 (shift t + y) r ->
  Rabs (r - Lse) <= readme_lse_bound ds top E (adds t) (norms t) (rescales t) (rescaled t).
Proof.
  intros P Y X. assert (U := u_range). assert (Pl := eps_l_nonneg).
  assert (Ne := terms_not_empty (README_Z e top E) t). assert (Le := terms_le t e top E).
  assert (Fd := Fden_shrinks _ _ Le Ne). assert (Fu := Fup_grows _ _ Le Ne). assert (Ou := Omega_up_stated).
  assert (Om := Omega_stated t l o e top E ran shifts top_key logits E_max).
  assert (Q : 0 < Fden xs - Omega xs (shift t) (ED t)) by (unfold readme_den in P; lra).
  assert (F0 : 0 < Fup xs).
  { apply sum_pos; [exact Ne|]. intros x I. assert (P1 := p_pos xs Ne x). assert (P2 := exp_pos (Z x)).
    assert (G := up_ge_1 (hD x)). apply Rmult_lt_0_compat; [now apply Rmult_lt_0_compat|lra]. }
  assert (Top : has_top t) by (destruct top_key as (x0 & I0 & Ex0); now apply (top_exists t x0)).
  assert (Zb : forall x, In x (paths t) -> Rabs (computed x - logit (pkey x)) + u * (shift t - computed x)
    + INR (met x) * eps' <= README_Z e top E x)
    by (destruct top_key as (x0 & I0 & Ex0); now apply (README_Z_bound e top E t x0)).
  assert (T := lse_bound t l o (README_Z e top E) ran shifts Top Zb y r Q Y X). cbv zeta in T.
  rewrite <- (data_keys t e) in T. set (e0 := E0 xs (shift t) (ED t)) in *.
  assert (LnLe : forall x x', 0 < x -> x <= x' -> ln x <= ln x').
  { intros x x' Hx L. destruct (Rle_lt_or_eq_dec _ _ L) as [K| ->]; [left; now apply ln_increasing|lra]. }
  assert (K0 : e0 <= readme_E0 ds top E (adds t) (norms t) (rescales t) (rescaled t)).
  { unfold e0, E0, readme_E0. apply Rmax_case.
    - eapply Rle_trans; [|apply Rmax_l]. apply LnLe; lra.
    - eapply Rle_trans; [|apply Rmax_r]. apply Ropp_le_contravar, LnLe; [exact P|]. unfold readme_den; lra. }
  assert (Ls := lse_to_shift). unfold readme_lse_bound, readme_E1. set (k0 := readme_E0 _ _ _ _ _ _ _) in *.
  assert (K1 : e0 + eps_l * (Rabs (Lse - shift t) + e0) <= k0 + eps_l * (Lse - top + E + k0)).
  { apply Rplus_le_compat; [exact K0|]. apply Rmult_le_compat_l; lra. }
  assert (K2 := Rmult_le_compat_l _ _ _ (proj1 U) K1). lra.
Qed.

End Lse.
