(* A coarse corollary: one number times the gauge. The only place where a maximum over the keys is taken. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient PassLine Grow.
Import ListNotations.
Open Scope R_scope.

Section Coarse.
Context {A : arithmetic} {B : functions}.
Variable xs : list term.
Hypothesis some_key : xs <> [].

Notation O := (attention (map term_key xs)).

(* The gauge: the average of |v|, S in README.md. *)
Definition gauge := sum (fun x => p xs x * Rabs (v x)) xs.

Lemma p_sum : sum (p xs) xs = 1.
Proof.
  assert (P := mass_keys_pos xs some_key). unfold p.
  rewrite (sum_ext _ (fun x => / mass (map term_key xs) * exp (s x))) by (intros; unfold Rdiv; ring).
  rewrite sum_scal. replace (sum (fun x => exp (s x)) xs) with (mass (map term_key xs)); [field; lra|].
  unfold mass; now rewrite sum_map.
Qed.

Lemma output_within_gauge : Rabs O <= gauge.
Proof.
  assert (P := mass_keys_pos xs some_key).
  assert (E : O = sum (fun x => p xs x * v x) xs).
  { unfold attention, moment. rewrite sum_map. unfold Rdiv. rewrite Rmult_comm, <- sum_scal.
    apply sum_ext; intros; unfold p, s, v; field; lra. }
  rewrite E at 1. eapply Rle_trans; [apply sum_abs|]. apply sum_le; intros x _.
  rewrite Rabs_mult, Rabs_right; [lra|]. left; now apply p_pos.
Qed.

Variables (z : R) (h h' : nat).
Hypothesis z_nonneg : 0 <= z.
Hypothesis Z_le : forall x, In x xs -> Z x <= z.
Hypothesis hN_le : forall x, In x xs -> (hN x <= h)%nat.
Hypothesis hD_le : forall x, In x xs -> (hD x <= h')%nat.

Lemma Fnum_coarse : Fnum xs <= (2 * (exp z - 1) + exp z * (g h + g h')) * gauge.
Proof.
  assert (Oo := output_within_gauge). set (o0 := Rabs O) in *. assert (P0 : 0 <= o0) by apply Rabs_pos.
  assert (T : Fnum xs <= sum (fun x => (exp z - 1 + exp z * g h) * (p xs x * Rabs (v x))
    + (exp z - 1 + exp z * g h') * o0 * p xs x) xs).
  { unfold Fnum. fold o0. rewrite <- sum_plus. apply sum_le; intros x I.
    assert (P : 0 < p xs x) by now apply p_pos. assert (Ez := exp_le _ _ (Z_le x I)). assert (Ep := exp_pos (Z x)).
    assert (Gn := g_mono _ _ (hN_le x I)). assert (Gd := g_mono _ _ (hD_le x I)).
    assert (Gn0 := g_nonneg (hN x)). assert (Gd0 := g_nonneg (hD x)). assert (V0 := Rabs_pos (v x)).
    assert (Tr : Rabs (v x - O) <= Rabs (v x) + o0).
    { unfold Rminus. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. unfold o0; lra. }
    assert (D0 := Rabs_pos (v x - O)).
    assert (K1 : p xs x * (exp (Z x) - 1) * Rabs (v x - O) <= p xs x * ((exp z - 1) * (Rabs (v x) + o0))).
    { rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
      apply Rle_trans with ((exp z - 1) * Rabs (v x - O)); [apply Rmult_le_compat_r; lra|].
      apply Rmult_le_compat_l; [|exact Tr]. assert (E0 := exp_le 0 z z_nonneg). rewrite exp_0 in E0. lra. }
    assert (K2 : p xs x * exp (Z x) * (g (hN x) * Rabs (v x) + g (hD x) * o0)
      <= p xs x * (exp z * (g h * Rabs (v x) + g h' * o0))).
    { rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
      assert (Q1 := Rmult_le_compat_r _ _ _ V0 Gn). assert (Q2 := Rmult_le_compat_r _ _ _ P0 Gd).
      assert (Q3 := Rmult_le_pos _ _ Gn0 V0). assert (Q4 := Rmult_le_pos _ _ Gd0 P0).
      apply Rmult_le_compat; lra. }
    lra. }
  eapply Rle_trans; [exact T|]. rewrite sum_plus, !sum_scal, p_sum. fold gauge.
  assert (E0 := exp_le 0 z z_nonneg). rewrite exp_0 in E0. assert (G' := g_nonneg h').
  assert (K : (exp z - 1 + exp z * g h') * o0 <= (exp z - 1 + exp z * g h') * gauge)
    by (apply Rmult_le_compat_l; [nra|exact Oo]). lra.
Qed.

Lemma Fden_coarse : exp (- z) * (1 - u) ^ h' <= Fden xs.
Proof.
  apply Rle_trans with (exp (- z) * (1 - u) ^ h' * sum (p xs) xs); [rewrite p_sum; lra|].
  rewrite <- sum_scal. apply sum_le; intros x I.
  assert (P : 0 < p xs x) by now apply p_pos. assert (L := Z_le x I).
  assert (Ez := exp_le (- z) (- Z x) ltac:(lra)).
  assert (Ep := exp_pos (- z)). assert (D := down_mono _ _ (hD_le x I)). assert (D0 := down_range h').
  rewrite Rmult_comm, Rmult_assoc. apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat; lra.
Qed.

(* Gamma: every Z_j <= z, at most h and h' roundings, Omega <= om. *)
Definition gamma om := (2 * (exp z - 1) + exp z * (g h + g h')) / (exp (- z) * (1 - u) ^ h' - om).

Theorem coarse_F om Om : Om <= om -> om < exp (- z) * (1 - u) ^ h' -> Fnum xs / (Fden xs - Om) <= gamma om * gauge.
Proof.
  intros L P. assert (N := Fnum_coarse). assert (D := Fden_coarse).
  assert (G0 : 0 <= gauge) by (eapply Rle_trans; [apply Rabs_pos|exact output_within_gauge]).
  assert (E0 := exp_le 0 z z_nonneg). rewrite exp_0 in E0. assert (Gh := g_nonneg h). assert (Gh' := g_nonneg h').
  assert (C0 : 0 <= (2 * (exp z - 1) + exp z * (g h + g h')) * gauge) by (apply Rmult_le_pos; [nra|exact G0]).
  unfold gamma, Rdiv. rewrite Rmult_assoc, (Rmult_comm (/ _) gauge), <- Rmult_assoc.
  apply Rle_trans with ((2 * (exp z - 1) + exp z * (g h + g h')) * gauge * / (Fden xs - Om)).
  - apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|exact N].
  - apply Rmult_le_compat_l; [exact C0|]. apply Rinv_le_contravar; lra.
Qed.

End Coarse.

(* Theorem: README.md's bound is at most (1 + u) (Gamma S + U) + u S + eta. *)
Theorem coarse_bound `{arithmetic} `{functions} ds top E a nl rs X St z h h' om :
  let xs := readme_terms top E a nl ds in
  ds <> [] -> 0 <= z -> (forall x, In x xs -> Z x <= z /\ (hN x <= h)%nat /\ (hD x <= h')%nat) ->
  readme_Omega ds top E a nl rs X <= om -> om < exp (- z) * (1 - u) ^ h' ->
  readme_bound ds top E a nl rs X St
    <= (1 + u) * (gamma z h h' om * gauge xs + readme_U ds top E a nl rs X St) + u * gauge xs + eta.
Proof.
  intros xs N Pz Hx L P. assert (U := u_range). assert (Ne : xs <> []) by (intros C; now apply map_eq_nil in C).
  assert (K : map term_key xs = map dkey ds) by (unfold xs, readme_terms; now rewrite map_map).
  assert (F := coarse_F xs Ne z h h' Pz (fun x I => proj1 (Hx x I)) (fun x I => proj1 (proj2 (Hx x I)))
    (fun x I => proj2 (proj2 (Hx x I))) om _ L P).
  assert (Oo := output_within_gauge xs Ne). rewrite K in Oo. unfold readme_bound, readme_F, readme_den. fold xs.
  assert (T := Rmult_le_compat_l _ _ _ (proj1 U) Oo). nra.
Qed.
