(* Section 6 of README.md without a shift: U in closed form, divided by whatever is known to be below D. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound Counts PassLine JudgeU OneLevel NoShift.
Import ListNotations.
Open Scope R_scope.

Section NoShiftU.
Context {A : arithmetic} {B : functions}.
Hypothesis ieee : oadd = 0.

Lemma unshifted_counts t : unshifted t -> rescaled t = 0 /\ stored t = 0 /\ ED t = 0.
Proof.
  induction t as [i M w|t IH t' IH'| |]; cbn [unshifted rescaled stored ED]; intros H; try tauto.
  destruct H as [H H']. destruct (IH H) as (-> & -> & ->), (IH' H') as (-> & -> & ->). repeat split; ring.
Qed.

Variables (t : tree) (l o : R) (zmax : path -> R).
Hypothesis ran : run t l o.
Hypothesis raw : unshifted t.
Hypothesis zmax_bound : forall x, In x (paths t) -> Rabs (computed x - logit (pkey x)) + eps' <= zmax x.

Notation xs := (terms zmax t).
Notation O := (attention (tree_keys t)).
Notation ab := (sum (fun x => f x * (Rabs (v x) + Rabs O)) xs).
Notation M := (magnify (ups t) (downs t)).

Lemma path_counts x : In x xs -> (hN x <= ups t /\ hD x <= downs t)%nat /\ 0 <= f x.
Proof.
  intros I. apply in_map_iff in I. destruct I as (y & <- & I). cbn [hN hD f].
  assert (C := proj1 (Forall_forall _ _) (counts t) y I). cbv beta in C. unfold ups, downs.
  split; [lia|apply weight_abs_bound].
Qed.

Lemma V_closed : 0 <= V xs (EN t) (ED t) <= (1 + u) ^ ups t * (ab + eta * keys_in t).
Proof.
  destruct (unshifted_counts t raw) as (X & S & E). assert (Hu := unshifted_unit_weights t raw).
  assert (N := EN_bound t l o ran Hu). destruct (EN_ED_nonneg t l o ran Hu) as [E0 _].
  unfold EN_closed in N. rewrite X, S, ieee, Rmult_0_l, !Rplus_0_r in N.
  unfold V. rewrite terms_keys, E, Rmult_0_r, Rplus_0_r. set (o0 := Rabs O). assert (P0 : 0 <= o0) by apply Rabs_pos.
  assert (T : 0 <= sum (fun x => f x * (Rabs (v x - O) + g (hN x) * Rabs (v x) + g (hD x) * o0)) xs
    <= (1 + u) ^ ups t * sum (fun x => f x * (Rabs (v x) + o0)) xs).
  { split.
    - apply sum_nonneg; intros x I. destruct (path_counts x I) as [_ F].
      assert (G := g_nonneg (hN x)). assert (G' := g_nonneg (hD x)). assert (Q := Rabs_pos (v x)).
      assert (Q' := Rabs_pos (v x - O)). apply Rmult_le_pos; [exact F|].
      assert (0 <= g (hN x) * Rabs (v x)) by now apply Rmult_le_pos.
      assert (0 <= g (hD x) * o0) by now apply Rmult_le_pos. lra.
    - rewrite <- sum_scal. apply sum_le; intros x I. destruct (path_counts x I) as [[L L'] F].
      replace ((1 + u) ^ ups t * (f x * (Rabs (v x) + o0))) with (f x * ((1 + u) ^ ups t * (Rabs (v x) + o0))) by ring.
      apply Rmult_le_compat_l; [exact F|].
      assert (Tr : Rabs (v x - O) <= Rabs (v x) + o0).
      { unfold Rminus. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. unfold o0; lra. }
      assert (Ld : (hD x <= ups t)%nat) by (unfold ups, downs in *; lia).
      assert (G := Rmult_le_compat_r _ _ _ (Rabs_pos (v x)) (g_mono _ _ L)).
      assert (G' := Rmult_le_compat_r _ _ _ P0 (g_mono _ _ Ld)).
      replace ((1 + u) ^ ups t) with (1 + g (ups t)) by (unfold g; ring). lra. }
  lra.
Qed.

(* Theorem (o) without a shift, as README.md states it: D is anything positive that l is known to be above. *)
Theorem no_shift_stated D r : 0 < D <= l -> 0 < Fden xs - Omega xs 0 (ED t) -> rounds eta (o / l) r ->
  Rabs (r - O) <= (1 + u) * (Fnum xs / (Fden xs - Omega xs 0 (ED t))) + u * Rabs O
    + (M ^ 2 / D * (ab + 2 * eta * keys_in t) + eta * M ^ 2).
Proof.
  intros [D0 Dl] P X. assert (T := no_shift_bound t l o zmax ran raw zmax_bound r P X).
  eapply Rle_trans; [exact T|]. assert (U := u_range). assert (Pe := eta_nonneg). destruct V_closed as [V0 V1].
  assert (K := keys_in_1 t). assert (Lu : (1 <= ups t)%nat) by (unfold ups; lia).
  assert (K1 := magnify_square (ups t) (downs t) (S (ups t)) ltac:(lia)).
  assert (K0 := magnify_square (ups t) (downs t) 0 ltac:(lia)). rewrite pow_O in K0.
  change ((1 + u) ^ S (ups t)) with ((1 + u) * (1 + u) ^ ups t) in K1. set (m2 := M ^ 2) in *. clearbody m2.
  assert (Pab : 0 <= ab).
  { apply sum_nonneg; intros x I. destruct (path_counts x I) as [_ F]. assert (Q := Rabs_pos (v x)).
    assert (Q' := Rabs_pos O). apply Rmult_le_pos; lra. }
  set (a := ab) in *. assert (En : 0 <= eta * keys_in t) by (apply Rmult_le_pos; lra).
  assert (W : (1 + u) * (V xs (EN t) (ED t) / l) <= m2 / D * (a + 2 * eta * keys_in t)).
  { apply Rle_trans with ((1 + u) * V xs (EN t) (ED t) / D).
    - unfold Rdiv. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; [exact V0|].
      apply Rinv_le_contravar; lra.
    - replace (m2 / D * (a + 2 * eta * keys_in t)) with (m2 * (a + 2 * eta * keys_in t) / D) by (field; lra).
      apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
      apply Rle_trans with ((1 + u) * ((1 + u) ^ ups t * (a + eta * keys_in t))); [apply Rmult_le_compat_l; lra|].
      rewrite <- Rmult_assoc. apply Rmult_le_compat; [|lra|exact K1|lra].
      assert (G := up_ge_1 (ups t)). apply Rmult_le_pos; lra. }
  assert (T9 := Rmult_le_compat_l _ _ _ Pe K0). rewrite Rmult_plus_distr_l. lra.
Qed.

(* Theorem: each key alone is below D; the largest of them, and mass (Fden - Omega), are what the judge divides by. *)
Theorem no_shift_largest_key x : In x xs -> (exp (s x - Z x) - f x) * (1 - u) ^ downs t <= l.
Proof.
  intros I. destruct (unshifted_counts t raw) as (_ & _ & E).
  destruct (raw_sums t l o zmax ran raw) as (_ & _ & L). rewrite E, Rminus_0_r in L.
  assert (Ok := raw_weight_ok t zmax raw zmax_bound).
  assert (Wp : forall y, In y xs -> 0 <= W y).
  { intros y J. destruct (proj1 (Forall_forall _ _) Ok y J) as (z & e & _ & _ & _ & P). exact P. }
  destruct (proj1 (Forall_forall _ _) Ok x I) as (z & e & Ew & Hz & He & P).
  destruct (path_counts x I) as [[_ Lh] _]. apply abs_le in Hz, He. rewrite Rminus_0_r in Ew.
  assert (Q := exp_le (s x - Z x) (s x + z) ltac:(lra)). assert (D := down_mono _ _ Lh).
  assert (D' := down_range (downs t)).
  apply Rle_trans with (W x * (1 - u) ^ hD x).
  - apply Rle_trans with (W x * (1 - u) ^ downs t); [apply Rmult_le_compat_r; lra|apply Rmult_le_compat_l; lra].
  - eapply Rle_trans; [|exact L]. apply (sum_ge_term (fun y => W y * (1 - u) ^ hD y)); [|exact I].
    intros y J. apply Rmult_le_pos; [now apply Wp|]. left; apply down_range.
Qed.
End NoShiftU.
