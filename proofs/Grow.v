(* README.md's bound grows with every count and every e_j: the judge may round all of them up (section 3 counts the keys
   that can raise a maximum, not those that do). *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound Counts PassLine Lse.
Import ListNotations.
Open Scope R_scope.

Section Grow.
Context {A : arithmetic} {B : functions}.

Definition le_datum d d' := dkey d = dkey d' /\ de d <= de d' /\ (1 <= dR d <= dR d')%nat.

Lemma abs_grows r r' : (r <= r')%nat ->
  0 <= eta_e * INR r * (1 + eps) ^ (r - 1) <= eta_e * INR r' * (1 + eps) ^ (r' - 1).
Proof.
  intros L. assert (P := eps_range). assert (H := eta_e_nonneg).
  assert (I := pos_INR r). assert (I' := le_INR _ _ L).
  assert (Q : 0 < (1 + eps) ^ (r - 1)) by (apply pow_lt; lra).
  assert (Q' : (1 + eps) ^ (r - 1) <= (1 + eps) ^ (r' - 1)) by (apply Rle_pow; [lra|lia]).
  assert (K := Rmult_le_compat_l _ _ _ H I'). assert (K0 := Rmult_le_pos _ _ H I).
  split; [apply Rmult_le_pos; lra|]. apply Rmult_le_compat; lra.
Qed.

Lemma f_terms x ds0 top0 E0 a0 nl0 : In x (readme_terms top0 E0 a0 nl0 ds0) -> 0 <= f x.
Proof. intros I. apply in_map_iff in I. destruct I as (d & <- & _). apply (abs_grows (dR d) (dR d)). lia. Qed.

Variables (ds ds' : list datum) (top E E' : R) (a a' nl nl' rs rs' : nat) (X X' St St' : R).
Hypothesis data_grow : Forall2 le_datum ds ds'.
Hypothesis some_key : ds <> [].
Hypothesis E_grows : E <= E'.
Hypothesis a_grows : (a <= a')%nat.
Hypothesis nl_grows : (nl <= nl')%nat.
Hypothesis rs_grows : (rs <= rs')%nat.
Hypothesis X_grows : 0 <= X <= X'.
Hypothesis St_grows : 0 <= St <= St'.

Notation xs := (readme_terms top E a nl ds).
Notation ys := (readme_terms top E' a' nl' ds').

Lemma terms_grow : Forall2 le_term xs ys.
Proof.
  assert (U := u_range). assert (P := eps'_nonneg). unfold readme_terms. clear some_key.
  induction data_grow as [|d d' ls ls' (K & L & R) H IH]; cbn [map];
    [apply Forall2_nil|apply Forall2_cons; [|exact (IH H)]].
  unfold le_term; cbn [term_key Z f hN hD]. rewrite <- K. split; [reflexivity|].
  split; [|split; [now apply abs_grows|lia]].
  assert (I := le_INR _ _ (proj2 R)). assert (I' := Rmult_le_compat_r _ _ _ P I).
  assert (T : u * (top - logit (dkey d) + de d + E) <= u * (top - logit (dkey d) + de d' + E'))
    by (apply Rmult_le_compat_l; lra). lra.
Qed.

Lemma keys_grow : map dkey ds = map dkey ds'.
Proof. clear some_key. induction data_grow as [|d d' ls ls' (K & _) H IH]; cbn; [reflexivity|].
  now rewrite K, (IH H). Qed.

Lemma lengths_grow : length ds = length ds'.
Proof. rewrite <- (map_length dkey ds), keys_grow. apply map_length. Qed.

Lemma terms_some : xs <> [].
Proof. intros C. apply map_eq_nil in C. now apply some_key. Qed.

Lemma Omega_grows : readme_Omega ds top E a nl rs X <= readme_Omega ds' top E' a' nl' rs' X'.
Proof.
  assert (P := eta_nonneg). unfold readme_Omega. rewrite <- keys_grow.
  assert (H := f_grows _ _ terms_grow). assert (G := up_mono (a + rs) (a' + rs') ltac:(lia)).
  assert (G1 := up_ge_1 (a + rs)).
  assert (F0 : 0 <= sum f xs) by (apply sum_nonneg; intros x; apply f_terms).
  assert (T : 0 <= eta * X <= eta * X') by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
  assert (T' : 0 <= (1 + u) ^ (a + rs) * (eta * X) <= (1 + u) ^ (a' + rs') * (eta * X'))
    by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
  apply Rmult_le_compat; [lra|left; apply exp_pos|lra|apply exp_le; lra].
Qed.

Lemma den_shrinks : readme_den ds' top E' a' nl' rs' X' <= readme_den ds top E a nl rs X.
Proof. unfold readme_den. assert (F := Fden_shrinks _ _ terms_grow terms_some). assert (O := Omega_grows). lra. Qed.

Lemma U_grows : readme_U ds top E a nl rs X St <= readme_U ds' top E' a' nl' rs' X' St'.
Proof.
  assert (P := eta_nonneg). assert (P' := oadd_nonneg). unfold readme_U. rewrite <- keys_grow, <- lengths_grow.
  set (o0 := Rabs _). assert (Po : 0 <= o0) by apply Rabs_pos.
  assert (G := up_mono (1 + a + rs + 2 * nl) (1 + a' + rs' + 2 * nl') ltac:(lia)).
  assert (G1 := up_ge_1 (1 + a + rs + 2 * nl)).
  assert (N1 : 1 <= INR (length ds)).
  { apply (le_INR 1). destruct ds; [congruence|cbn; lia]. }
  assert (S1 : sum (fun x => f x * (Rabs (v x) + o0)) xs <= sum (fun x => f x * (Rabs (v x) + o0)) ys).
  { apply sum_le2; [exact terms_grow|]. intros x y (K & _ & L & _). unfold v; rewrite K.
    apply Rmult_le_compat_r; [|exact L]. assert (Q := Rabs_pos (value (term_key y))). lra. }
  assert (S0 : 0 <= sum (fun x => f x * (Rabs (v x) + o0)) xs).
  { apply sum_nonneg; intros x I. apply Rmult_le_pos; [now apply f_terms in I|]. assert (Q := Rabs_pos (v x)). lra. }
  assert (T1 : 0 <= eta * (INR (length ds) + X + St) <= eta * (INR (length ds) + X' + St'))
    by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
  assert (T2 : 0 <= oadd * (INR (length ds) - 1)) by (apply Rmult_le_pos; lra).
  assert (T3 : 0 <= eta * X * o0 <= eta * X' * o0).
  { assert (T : 0 <= eta * X <= eta * X') by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
    split; [apply Rmult_le_pos|apply Rmult_le_compat_r]; lra. }
  apply Rmult_le_compat; lra.
Qed.

(* Theorem: larger counts, a larger bound. *)
Theorem bound_grows : 0 < readme_den ds' top E' a' nl' rs' X' -> (forall x, In x xs -> 0 <= Z x) ->
  readme_bound ds top E a nl rs X St <= readme_bound ds' top E' a' nl' rs' X' St'.
Proof.
  intros D HZ. assert (U := u_range). unfold readme_bound. rewrite <- keys_grow.
  apply Rplus_le_compat_r, Rplus_le_compat_r, Rmult_le_compat_l; [lra|].
  assert (Ds := den_shrinks). assert (Fn := Fnum_grows _ _ terms_grow terms_some).
  apply Rplus_le_compat; [|exact U_grows]. unfold readme_F, Rdiv.
  apply Rmult_le_compat; [apply Fnum_nonneg; [exact terms_some|exact HZ]|left; apply Rinv_0_lt_compat; lra|exact Fn|].
  apply Rinv_le_contravar; lra.
Qed.

Lemma ln_le x y : 0 < x -> x <= y -> ln x <= ln y.
Proof. intros P L. destruct (Rle_lt_or_eq_dec _ _ L) as [K| ->]; [left; now apply ln_increasing|lra]. Qed.

(* Theorem: so does that of lse. *)
Theorem lse_bound_grows : 0 < readme_den ds' top E' a' nl' rs' X' ->
  readme_lse_bound ds top E a nl rs X <= readme_lse_bound ds' top E' a' nl' rs' X'.
Proof.
  intros D. assert (U := u_range). assert (L := eps_l_nonneg). assert (Ds := den_shrinks).
  assert (Fu := Fup_grows _ _ terms_grow terms_some).
  assert (F1 : 0 < Fup xs).
  { apply sum_pos; [exact terms_some|]. intros x I. assert (P1 := p_pos xs terms_some x). assert (P2 := exp_pos (Z x)).
    assert (G := up_ge_1 (hD x)). apply Rmult_lt_0_compat; [now apply Rmult_lt_0_compat|lra]. }
  assert (O : 0 <= readme_Omega_up ds top E a nl rs X <= readme_Omega_up ds' top E' a' nl' rs' X').
  { unfold readme_Omega_up. rewrite <- keys_grow. assert (H := f_grows _ _ terms_grow). assert (P := eta_nonneg).
    assert (G := up_mono (a + rs) (a' + rs') ltac:(lia)). assert (G1 := up_ge_1 (a + rs)).
    assert (F0 : 0 <= sum f xs) by (apply sum_nonneg; intros x; apply f_terms).
    assert (T : 0 <= eta * X <= eta * X') by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
    assert (T1 : 0 <= (1 + u) ^ (a + rs) * (sum f xs + eta * X)) by (apply Rmult_le_pos; lra).
    assert (T2 : (1 + u) ^ (a + rs) * (sum f xs + eta * X) <= (1 + u) ^ (a' + rs') * (sum f ys + eta * X'))
      by (apply Rmult_le_compat; lra).
    split; [apply Rmult_le_pos; [exact T1|left; apply exp_pos]|].
    apply Rmult_le_compat; [exact T1|left; apply exp_pos|exact T2|apply exp_le; lra]. }
  unfold readme_lse_bound, readme_E1. rewrite <- keys_grow.
  set (e := readme_E0 ds top E a nl rs X). set (e' := readme_E0 ds' top E' a' nl' rs' X').
  assert (Ee : e <= e').
  { unfold e, e', readme_E0. apply Rmax_case.
    - eapply Rle_trans; [|apply Rmax_l]. apply ln_le; lra.
    - eapply Rle_trans; [|apply Rmax_r]. apply Ropp_le_contravar, ln_le; lra. }
  assert (T := Rmult_le_compat_l _ _ _ L Ee). assert (T2 := Rmult_le_compat_l _ _ _ L E_grows).
  assert (T3 : e + eps_l * (lse (map dkey ds) - top + E + e)
    <= e' + eps_l * (lse (map dkey ds) - top + E' + e')) by lra.
  assert (T4 := Rmult_le_compat_l _ _ _ (proj1 U) T3). lra.
Qed.

End Grow.
