(* Section 5 and 7 of README.md: from the errors of the weights and of the sums to the error of o = N/D and of lse. *)
From Coq Require Import Reals Lra List.
From FD Require Import Sum Round Exp Algebra.
Import ListNotations.
Open Scope R_scope.

(* One visible key as the bound sees it. W: its computed weight, which the bound itself does not mention; Z, f: how far
   that may be off, in the exponent and absolute; hN, hD: roundings its term meets in numerator and denominator. *)
Record term := Term { term_key : key; W : R; Z : R; f : R; hN : nat; hD : nat }.

Definition s (x : term) := logit (term_key x).
Definition v (x : term) := value (term_key x).

Section Quotient.
Context {A : arithmetic} {B : functions}.
Variable xs : list term.
Hypothesis some_key : xs <> [].

Notation ks := (map term_key xs).
Notation O := (attention ks).

(* The exact probability of a key, and the quantities of (o) and (lse) in README.md. *)
Definition p (x : term) := exp (s x) / mass ks.
Definition Fnum := sum (fun x => p x * (exp (Z x) - 1) * Rabs (v x - O)) xs
                 + sum (fun x => p x * exp (Z x) * (g (hN x) * Rabs (v x) + g (hD x) * Rabs O)) xs.
Definition Fden := sum (fun x => p x * exp (- Z x) * (1 - u) ^ hD x) xs.
Definition Fup := sum (fun x => p x * exp (Z x) * (1 + u) ^ hD x) xs.

(* What underflow adds: EN and ED are the absolute errors of the two sums, M is the shift at the root. *)
Definition Omega M ED := (sum f xs + ED) * exp (M - lse ks).
Definition V EN ED :=
  sum (fun x => f x * (Rabs (v x - O) + g (hN x) * Rabs (v x) + g (hD x) * Rabs O)) xs + EN + Rabs O * ED.

Variables (M N D EN ED : R).

(* The computed weight of a key ... *)
Definition weight_ok x := exists z e, W x = exp (s x - M + z) + e /\ Rabs z <= Z x /\ Rabs e <= f x /\ 0 <= W x.
Hypothesis weights : Forall weight_ok xs.

(* ... and the computed sums, whatever computed them. *)
Hypothesis num_error :
  Rabs (N - sum (fun x => W x * v x) xs) <= sum (fun x => W x * (g (hN x) * Rabs (v x))) xs + EN.
Hypothesis den_error : Rabs (D - sum W xs) <= sum (fun x => W x * g (hD x)) xs + ED.
Hypothesis den_lower : sum (fun x => W x * (1 - u) ^ hD x) xs - ED <= D.
Hypothesis EN_nonneg : 0 <= EN.
Hypothesis ED_nonneg : 0 <= ED.

Let L := mass ks * exp (- M).

Lemma mass_keys_pos : 0 < mass ks.
Proof. apply mass_pos. intros E; apply some_key. now apply map_eq_nil in E. Qed.

Lemma L_pos : 0 < L.
Proof. apply Rmult_lt_0_compat; [apply mass_keys_pos|apply exp_pos]. Qed.

Lemma p_pos x : 0 < p x.
Proof. apply Rdiv_lt_0_compat; [apply exp_pos|apply mass_keys_pos]. Qed.

Lemma scaled x : exp (s x - M) = L * p x.
Proof. assert (P := mass_keys_pos). unfold L, p, Rminus. rewrite exp_plus. field. lra. Qed.

Lemma exp_between z y : Rabs z <= y -> exp (- y) <= exp z <= exp y.
Proof.
  intros H. apply abs_le in H. split.
  - destruct (Req_dec (- y) z) as [->|]; [lra|]. left; apply exp_increasing; lra.
  - destruct (Req_dec z y) as [->|]; [lra|]. left; apply exp_increasing; lra.
Qed.

(* e^-Z >= 2 - e^Z, so that |e^z - 1| <= e^Z - 1 on both sides. *)
Lemma exp_symmetric y : 2 - exp y <= exp (- y).
Proof.
  assert (P := exp_pos y). rewrite exp_Ropp.
  apply (Rmult_le_reg_r (exp y)); [exact P|]. rewrite Rinv_l by lra.
  assert (Q := Rle_0_sqr (exp y - 1)); unfold Rsqr in Q; lra.
Qed.

Lemma weight_bounds x : In x xs ->
  0 <= W x /\ Rabs (W x - L * p x) <= L * p x * (exp (Z x) - 1) + f x /\
  L * p x * exp (- Z x) - f x <= W x <= L * p x * exp (Z x) + f x.
Proof.
  intros I. destruct (proj1 (Forall_forall _ _) weights x I) as (z & e & E & Hz & He & P).
  assert (C : 0 < L * p x) by (apply Rmult_lt_0_compat; [apply L_pos|apply p_pos]).
  destruct (exp_between z (Z x) Hz) as [Lo Up]. assert (Sy := exp_symmetric (Z x)).
  apply abs_le in He. rewrite exp_plus, scaled in E. split; [exact P|].
  assert (T1 := Rmult_le_compat_l _ _ _ (Rlt_le _ _ C) Lo).
  assert (T2 := Rmult_le_compat_l _ _ _ (Rlt_le _ _ C) Up).
  assert (T3 := Rmult_le_compat_l _ _ _ (Rlt_le _ _ C) Sy).
  split; [apply abs_le|]; lra.
Qed.

(* An error common to all weights costs nothing. *)
Lemma centred : sum (fun x => L * p x * (v x - O)) xs = 0.
Proof.
  assert (P := mass_keys_pos).
  transitivity (L / mass ks * (moment ks - O * mass ks)); [|unfold attention; field; lra].
  unfold mass at 2; unfold moment. rewrite !sum_map. unfold Rminus.
  rewrite Ropp_mult_distr_l, <- !sum_scal, <- sum_plus, <- sum_scal.
  apply sum_ext; intros. unfold p, s, v. field. lra.
Qed.

Lemma residual : Rabs (N - O * D) <= L * Fnum + V EN ED.
Proof.
  set (SW := sum (fun x => W x * v x) xs) in *.
  assert (C : SW - O * sum W xs = sum (fun x => (W x - L * p x) * (v x - O)) xs).
  { transitivity (sum (fun x => (W x - L * p x) * (v x - O)) xs + sum (fun x => L * p x * (v x - O)) xs);
      [|rewrite centred; ring].
    unfold SW, Rminus at 1. rewrite Ropp_mult_distr_l, <- sum_scal, <- !sum_plus. apply sum_ext; intros; ring. }
  replace (N - O * D) with ((N - SW) + - O * (D - sum W xs) + (SW - O * sum W xs)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. eapply Rle_trans; [apply Rplus_le_compat_r, Rabs_triang|].
  rewrite Rabs_mult, Rabs_Ropp, C.
  assert (T := Rmult_le_compat_l _ _ _ (Rabs_pos O) den_error).
  assert (K : Rabs (sum (fun x => (W x - L * p x) * (v x - O)) xs)
    <= sum (fun x => (L * p x * (exp (Z x) - 1) + f x) * Rabs (v x - O)) xs).
  { eapply Rle_trans; [apply sum_abs|]. apply sum_le; intros x I. rewrite Rabs_mult.
    apply Rmult_le_compat_r; [apply Rabs_pos|apply weight_bounds, I]. }
  set (G x := g (hN x) * Rabs (v x) + g (hD x) * Rabs O).
  assert (Q : sum (fun x => W x * (g (hN x) * Rabs (v x))) xs + Rabs O * sum (fun x => W x * g (hD x)) xs
    <= sum (fun x => (L * p x * exp (Z x) + f x) * G x) xs).
  { rewrite <- sum_scal, <- sum_plus. apply sum_le; intros x I. destruct (weight_bounds x I) as (_ & _ & _ & Up).
    assert (Gp : 0 <= G x).
    { apply Rplus_le_le_0_compat; (apply Rmult_le_pos; [apply g_nonneg|apply Rabs_pos]). }
    apply Rle_trans with (W x * G x); [right; unfold G; ring|]. now apply Rmult_le_compat_r. }
  assert (E : L * Fnum + V EN ED = sum (fun x => (L * p x * exp (Z x) + f x) * G x) xs
    + sum (fun x => (L * p x * (exp (Z x) - 1) + f x) * Rabs (v x - O)) xs + EN + Rabs O * ED).
  { unfold Fnum, V. rewrite Rmult_plus_distr_l, <- !sum_scal.
    match goal with |- ?a + ?b + (?c + EN + ?e) = ?d + ?k + EN + ?e => enough (a + b + c = d + k) by lra end.
    rewrite <- !sum_plus. apply sum_ext; intros; unfold G; ring. }
  rewrite E. lra.
Qed.

Lemma omega_scaled : L * Omega M ED = sum f xs + ED.
Proof.
  unfold Omega, L. assert (P := mass_keys_pos). assert (Q := exp_pos M).
  unfold Rminus, lse. rewrite exp_plus, !exp_Ropp, exp_ln by exact P. field. split; lra.
Qed.

Lemma f_nonneg x : In x xs -> 0 <= f x.
Proof.
  intros I. destruct (proj1 (Forall_forall _ _) weights x I) as (z & e & _ & _ & He & _).
  eapply Rle_trans; [apply Rabs_pos|exact He].
Qed.

Lemma den_at_least : L * (Fden - Omega M ED) <= D.
Proof.
  eapply Rle_trans; [|exact den_lower]. rewrite Rmult_minus_distr_l, omega_scaled.
  enough (L * Fden - sum f xs <= sum (fun x => W x * (1 - u) ^ hD x) xs) by lra.
  unfold Fden. rewrite <- sum_scal.
  enough (sum (fun x => L * (p x * exp (- Z x) * (1 - u) ^ hD x)) xs
    <= sum (fun x => W x * (1 - u) ^ hD x + f x) xs) by (rewrite sum_plus in *; lra).
  apply sum_le; intros x I. destruct (weight_bounds x I) as (_ & _ & Lo & _).
  assert (R := down_range (hD x)). assert (P := f_nonneg x I). nra.
Qed.

Lemma Fnum_nonneg : (forall x, In x xs -> 0 <= Z x) -> 0 <= Fnum.
Proof.
  intros H. apply Rplus_le_le_0_compat; apply sum_nonneg; intros x I; assert (P := p_pos x).
  - destruct (exp_between 0 (Z x)) as [_ Q]; [rewrite Rabs_R0; auto|]. rewrite exp_0 in Q.
    apply Rmult_le_pos; [nra|apply Rabs_pos].
  - assert (Q := exp_pos (Z x)). apply Rmult_le_pos; [nra|].
    apply Rplus_le_le_0_compat; (apply Rmult_le_pos; [apply g_nonneg|apply Rabs_pos]).
Qed.

Lemma Z_nonneg x : In x xs -> 0 <= Z x.
Proof.
  intros I. destruct (proj1 (Forall_forall _ _) weights x I) as (z & e & _ & Hz & _ & _).
  eapply Rle_trans; [apply Rabs_pos|exact Hz].
Qed.

(* Theorem: the quotient before its own rounding. *)
Theorem quotient_error : 0 < D -> 0 < Fden - Omega M ED ->
  Rabs (N / D - O) <= Fnum / (Fden - Omega M ED) + V EN ED / D.
Proof.
  intros HD HF. assert (P := L_pos). assert (R := residual). assert (Q := den_at_least).
  assert (Np := Fnum_nonneg Z_nonneg).
  replace (N / D - O) with ((N - O * D) / D) by (field; lra).
  unfold Rdiv at 1. rewrite Rabs_mult, Rabs_inv, (Rabs_right D) by lra.
  apply Rle_trans with ((L * Fnum + V EN ED) / D).
  { apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|exact R]. }
  unfold Rdiv; rewrite Rmult_plus_distr_r. apply Rplus_le_compat_r.
  apply (Rmult_le_reg_r (D * (Fden - Omega M ED))); [now apply Rmult_lt_0_compat|].
  replace (L * Fnum * / D * (D * (Fden - Omega M ED))) with (Fnum * (L * (Fden - Omega M ED))) by (field; lra).
  replace (Fnum * / (Fden - Omega M ED) * (D * (Fden - Omega M ED))) with (Fnum * D) by (field; lra).
  now apply Rmult_le_compat_l.
Qed.

(* Theorem (o): the output, its division rounded. F = Fnum / (Fden - Omega). *)
Theorem output_error r : 0 < D -> 0 < Fden - Omega M ED -> rounds eta (N / D) r ->
  Rabs (r - O) <= (1 + u) * (Fnum / (Fden - Omega M ED) + V EN ED / D) + u * Rabs O + eta.
Proof. intros HD HF X. exact (rounds_error _ _ _ _ _ _ X (quotient_error HD HF) (Rle_refl _)). Qed.

(* ---- lse (section 7) ------------------------------------------------------------------------------------------- *)

Definition Omega_up M ED := (sum (fun x => f x * (1 + u) ^ hD x) xs + ED) * exp (M - lse ks).

(* How far ln D can be from lse - M. *)
Definition E0 M ED := Rmax (ln (Fup + Omega_up M ED)) (- ln (Fden - Omega M ED)).

Lemma den_at_most : D <= L * (Fup + Omega_up M ED).
Proof.
  assert (Q : L * Omega_up M ED = sum (fun x => f x * (1 + u) ^ hD x) xs + ED).
  { unfold Omega_up, L. assert (P := mass_keys_pos). assert (Q := exp_pos M).
    unfold Rminus, lse. rewrite exp_plus, !exp_Ropp, exp_ln by exact P. field. split; lra. }
  rewrite Rmult_plus_distr_l, Q. assert (T := den_error). apply abs_le in T.
  enough (sum W xs + sum (fun x => W x * g (hD x)) xs <= L * Fup + sum (fun x => f x * (1 + u) ^ hD x) xs) by lra.
  unfold Fup. rewrite <- sum_scal, <- !sum_plus. apply sum_le; intros x I.
  destruct (weight_bounds x I) as (_ & _ & _ & Up). assert (R := up_ge_1 (hD x)).
  replace (W x + W x * g (hD x)) with (W x * (1 + u) ^ hD x) by (unfold g; ring). nra.
Qed.

Lemma log_error : 0 < D -> 0 < Fden - Omega M ED -> Rabs (ln D - (lse ks - M)) <= E0 M ED.
Proof.
  intros HD HF. assert (P := L_pos). assert (Lo := den_at_least). assert (Up := den_at_most).
  assert (Q : lse ks - M = ln L) by (unfold L, lse; rewrite ln_mult, ln_exp; [ring|apply mass_keys_pos|apply exp_pos]).
  assert (HU : 0 < Fup + Omega_up M ED) by (apply (Rmult_lt_reg_l L); [exact P|rewrite Rmult_0_r; lra]).
  assert (T1 : ln L + ln (Fden - Omega M ED) <= ln D).
  { rewrite <- ln_mult by assumption. destruct (Rle_lt_or_eq_dec _ _ Lo) as [K|K].
    - left; apply ln_increasing; [now apply Rmult_lt_0_compat|exact K].
    - rewrite K; lra. }
  assert (T2 : ln D <= ln L + ln (Fup + Omega_up M ED)).
  { rewrite <- ln_mult by assumption. destruct (Rle_lt_or_eq_dec _ _ Up) as [K|K].
    - left; now apply ln_increasing.
    - rewrite K; lra. }
  assert (M1 := Rmax_l (ln (Fup + Omega_up M ED)) (- ln (Fden - Omega M ED))).
  assert (M2 := Rmax_r (ln (Fup + Omega_up M ED)) (- ln (Fden - Omega M ED))).
  fold (E0 M ED) in M1, M2. rewrite Q. apply abs_le; lra.
Qed.

(* Theorem (lse): r = fl(M + fl(ln D)), the logarithm within eps_l relative (H4). The expectation of Z is no bound:
   E0 is a logarithm of a mean of e^Z, not a mean of Z. *)
Theorem lse_error y r :
  0 < D -> 0 < Fden - Omega M ED -> Rabs (y - ln D) <= eps_l * Rabs (ln D) -> rounds 0 (M + y) r ->
  let E1 := E0 M ED + eps_l * (Rabs (lse ks - M) + E0 M ED) in
  Rabs (r - lse ks) <= E1 + u * (Rabs (lse ks) + E1).
Proof.
  intros HD HF Y X E1. assert (T := log_error HD HF). assert (P := eps_l_nonneg).
  assert (K : Rabs (ln D) <= Rabs (lse ks - M) + E0 M ED).
  { replace (ln D) with ((ln D - (lse ks - M)) + (lse ks - M)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. lra. }
  assert (Q : Rabs (M + y - lse ks) <= E1).
  { replace (M + y - lse ks) with ((y - ln D) + (ln D - (lse ks - M))) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. assert (K' := Rmult_le_compat_l _ _ _ P K). unfold E1; lra. }
  assert (R := rounds_error _ _ _ _ _ _ X Q (Rle_refl _)). lra.
Qed.

End Quotient.
