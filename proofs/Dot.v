(* The logit: a dot product summed in any order, with or without FMA, underflow included, times sm_scale. *)
From Coq Require Import Reals Lra Lia.
From FD Require Import Round.
Open Scope R_scope.

Section Dot.
Context {A : arithmetic}.

(* An order of summation: a binary tree over the products q_i k_i. A loop is a comb, a warp shuffle is balanced. *)
Inductive dot := Product (q k : R) | Plus (t t' : dot).

Fixpoint dot_exact t := match t with Product q k => q * k | Plus t t' => dot_exact t + dot_exact t' end.
Fixpoint dot_size t := match t with Product q k => Rabs (q * k) | Plus t t' => dot_size t + dot_size t' end.
Fixpoint products t := match t with Product _ _ => 1%nat | Plus t t' => (products t + products t')%nat end.
(* Roundings on the longest way: the product and the additions above it. *)
Fixpoint roundings t := match t with Product _ _ => 1%nat | Plus t t' => S (Nat.max (roundings t) (roundings t')) end.

(* r is a result that the order may give. Each addition of a product may be contracted. *)
Inductive dot_run : dot -> R -> Prop :=
  | run_product q k r : rounds eta (q * k) r -> dot_run (Product q k) r
  | run_plus t t' a b r : dot_run t a -> dot_run t' b -> rounds 0 (a + b) r -> dot_run (Plus t t') r
  | run_fma q k t a r : dot_run t a -> rounds eta (q * k + a) r -> dot_run (Plus t (Product q k)) r.

Lemma dot_size_bound t : Rabs (dot_exact t) <= dot_size t.
Proof. induction t; simpl; [lra|]. eapply Rle_trans; [apply Rabs_triang|]. lra. Qed.

Lemma roundings_le_products t : (roundings t <= products t)%nat.
Proof.
  assert (P : forall t, (1 <= products t)%nat) by (intros t'; induction t'; simpl; lia).
  induction t as [|t IH t' IH']; simpl; [lia|]. assert (Q := P t). assert (Q' := P t'). lia.
Qed.

(* Theorem: |fl(q.k) - q.k| <= g(h) sum |q_i k_i| + d eta (1 + u)^h, h the roundings on the longest way: at most d. *)
Theorem dot_error t r : dot_run t r ->
  Rabs (r - dot_exact t) <= g (roundings t) * dot_size t + INR (products t) * eta * (1 + u) ^ roundings t.
Proof.
  assert (U := u_range). assert (H := eta_nonneg).
  induction 1 as [q k r X|t t' a b r _ IH _ IH' X|q k t a r _ IH X].
  - apply error in X. assert (G := up_ge_1 1). cbn [roundings products dot_size dot_exact INR].
    unfold g; simpl in *. nra.
  - cbn [roundings products dot_size dot_exact]. rewrite plus_INR. set (h := Nat.max _ _).
    assert (L : (roundings t <= h)%nat) by apply Nat.le_max_l.
    assert (L' : (roundings t' <= h)%nat) by apply Nat.le_max_r.
    assert (Z := dot_size_bound (Plus t t')); cbn [dot_size dot_exact] in Z.
    assert (B : Rabs (a + b - (dot_exact t + dot_exact t'))
      <= g h * (dot_size t + dot_size t') + (INR (products t) + INR (products t')) * eta * (1 + u) ^ h).
    { replace (a + b - _) with ((a - dot_exact t) + (b - dot_exact t')) by ring.
      eapply Rle_trans; [apply Rabs_triang|].
      assert (P := pos_INR (products t)). assert (P' := pos_INR (products t')).
      assert (M := up_mono _ _ L). assert (M' := up_mono _ _ L').
      assert (N := g_mono _ _ L). assert (N' := g_mono _ _ L').
      assert (V : 0 <= dot_size t) by (eapply Rle_trans; [apply Rabs_pos|apply dot_size_bound]).
      assert (V' : 0 <= dot_size t') by (eapply Rle_trans; [apply Rabs_pos|apply dot_size_bound]).
      assert (E := Rmult_le_pos _ _ P H). assert (E' := Rmult_le_pos _ _ P' H).
      assert (K := Rmult_le_compat_r _ _ _ V N). assert (K' := Rmult_le_compat_r _ _ _ V' N').
      assert (W := Rmult_le_compat_l _ _ _ E M). assert (W' := Rmult_le_compat_l _ _ _ E' M'). lra. }
    eapply Rle_trans; [apply (rounds_error _ _ _ _ _ _ X B Z)|]. rewrite g_S. simpl. lra.
  - cbn [roundings products dot_size dot_exact]. rewrite plus_INR. simpl (INR 1).
    assert (L : (1 <= roundings t)%nat) by (destruct t; simpl; lia).
    rewrite (Nat.max_l _ _ L). set (h := roundings t) in *.
    assert (Z := dot_size_bound (Plus t (Product q k))); cbn [dot_size dot_exact] in Z.
    assert (B : Rabs (q * k + a - (dot_exact t + q * k))
      <= g h * dot_size t + INR (products t) * eta * (1 + u) ^ h).
    { replace (q * k + a - _) with (a - dot_exact t) by ring. exact IH. }
    eapply Rle_trans; [apply (rounds_error _ _ _ _ _ _ X B Z)|]. rewrite g_S. simpl.
    assert (Q := Rabs_pos (q * k)). assert (G := g_nonneg h).
    assert (K := up_ge_1 (S h)); simpl in K. assert (E := Rmult_le_compat_l _ _ _ H K).
    assert (O : 0 <= 1 + u) by lra. assert (J := Rmult_le_pos _ _ Q (Rmult_le_pos _ _ O G)). lra.
Qed.

(* Zeros are exact: e_j = 0 if a_j = 0. *)
Theorem dot_zero t r : dot_run t r -> dot_size t = 0 -> r = 0.
Proof.
  assert (N : forall t, 0 <= dot_size t) by (intros t'; eapply Rle_trans; [apply Rabs_pos|apply dot_size_bound]).
  assert (Z : forall x, Rabs x = 0 -> x = 0) by (intros x; unfold Rabs; destruct (Rcase_abs x); lra).
  induction 1 as [q k r X|t t' a b r _ IH _ IH' X|q k t a r _ IH X]; cbn [dot_size]; intros S.
  - rewrite (Z _ S) in X. exact (rounds_zero _ _ X).
  - assert (T := N t). assert (T' := N t'). rewrite IH, IH', Rplus_0_r in X by lra. exact (rounds_zero _ _ X).
  - assert (T := N t). assert (T' := Rabs_pos (q * k)).
    rewrite IH, (Z (q * k)), Rplus_0_r in X by lra. exact (rounds_zero _ _ X).
Qed.

(* e_j of README.md section 4, h + 1 roundings in place of d + 1. *)
Definition logit_error (h d : nat) (scale a : R) := g (S h) * a + Rabs scale * INR d * eta * (1 + g (S h)) + eta.

(* Theorem: the computed logit is within e_j of the exact one, for any order, with or without FMA. *)
Theorem logit_error_bound t r scale s : dot_run t r -> rounds eta (scale * r) s ->
  Rabs (s - scale * dot_exact t) <= logit_error (roundings t) (products t) scale (Rabs scale * dot_size t).
Proof.
  intros D X. assert (U := u_range). set (h := roundings t).
  assert (B : Rabs (scale * r - scale * dot_exact t)
    <= Rabs scale * (g h * dot_size t + INR (products t) * eta * (1 + u) ^ h)).
  { rewrite <- Rmult_minus_distr_l, Rabs_mult. apply Rmult_le_compat_l; [apply Rabs_pos|]. now apply dot_error. }
  assert (G : Rabs (scale * dot_exact t) <= Rabs scale * dot_size t).
  { rewrite Rabs_mult. apply Rmult_le_compat_l; [apply Rabs_pos|apply dot_size_bound]. }
  eapply Rle_trans; [apply (rounds_error _ _ _ _ _ _ X B G)|].
  unfold logit_error. rewrite g_S. unfold g. simpl. apply Req_le; ring.
Qed.

(* In head_dim alone, whatever the order. *)
Lemma logit_error_mono h h' d scale a : (h <= h')%nat -> 0 <= a ->
  logit_error h d scale a <= logit_error h' d scale a.
Proof.
  intros L P. unfold logit_error. assert (G := g_mono (S h) (S h') ltac:(lia)). assert (E := eta_nonneg).
  assert (Q : 0 <= Rabs scale * INR d * eta)
    by (repeat apply Rmult_le_pos; [apply Rabs_pos|apply pos_INR|exact E]). nra.
Qed.

Corollary logit_error_any_order t r scale s : dot_run t r -> rounds eta (scale * r) s ->
  Rabs (s - scale * dot_exact t) <= logit_error (products t) (products t) scale (Rabs scale * dot_size t).
Proof.
  intros D X. eapply Rle_trans; [now apply (logit_error_bound t r scale s)|].
  apply logit_error_mono; [apply roundings_le_products|].
  apply Rmult_le_pos; [apply Rabs_pos|eapply Rle_trans; [apply Rabs_pos|apply dot_size_bound]].
Qed.

End Dot.
