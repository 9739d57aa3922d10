(* Trees with one level of normalised parts, whatever is below and above it: what the parts store, and that the U of
   README.md covers it. Rungs 22 to 24 are such trees, as is 05. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound Counts PassLine Split JudgeU.
Import ListNotations.
Open Scope R_scope.

(* P; and each part holds the key with its own shift, none normalised inside. *)
Fixpoint normed t : R := match t with
  | Leaf _ _ _ => 0 | Add t t' => normed t + normed t' | Rescale _ _ t => normed t
  | Normalise _ _ _ _ t => 1 + normed t end.
Fixpoint one_level t := match t with
  | Leaf _ _ _ => True | Add t t' => one_level t /\ one_level t' | Rescale _ _ t => one_level t
  | Normalise _ _ _ _ t => norms t = 0%nat /\ has_top t end.

Lemma normed_nonneg t : 0 <= normed t.
Proof. induction t; simpl; lra. Qed.
Lemma norms_0 t : norms t = 0%nat -> stored t = 0 /\ normed t = 0.
Proof.
  induction t as [i M w|t IH t' IH'|M a t IH|M a q b t IH]; cbn [norms stored normed]; intros H.
  - now split.
  - destruct (IH ltac:(lia)), (IH' ltac:(lia)). lra.
  - now apply IH.
  - discriminate.
Qed.

Section OneLevel.
Context {A : arithmetic} {B : functions}.
Hypothesis ieee : oadd = 0.

(* A part: how large l and o / l can be. *)
Lemma part_upper t l o vm : run t l o -> shifts_ok t -> has_top t -> norms t = 0%nat ->
  (forall x, In x (paths t) -> Rabs (value (pkey x)) <= vm) ->
  let d := (1 + u) ^ downs t * (eta * rescaled t) in
  1 <= l <= (1 + u) ^ downs t * keys_in t + d /\
  Rabs (o / l) <= vm * (1 + u) ^ ups t / (1 - u) ^ downs t * (1 + d)
    + (1 + u) ^ ups t * (eta * (keys_in t + rescaled t)).
Proof.
  intros Hr Hs Ht Hn Hv d. assert (Hu := shifts_unit_weights t Hs). assert (U := u_range).
  destruct (tree_sums t l o Hr Hu) as (N & D & L & _). assert (Nc := EN_bound t l o Hr Hu).
  assert (Ec := EN_closed_nonneg t l o Hr Hu). assert (L1 := denominator_at_least_1 t l o Hr Hs Ht).
  destruct (EN_ED_nonneg t l o Hr Hu) as [_ ED0]. assert (Db := ED_bound t). fold d in Db.
  unfold EN_closed in Nc, Ec. destruct (norms_0 t Hn) as [S0 _]. rewrite S0, ieee, Rmult_0_l, !Rplus_0_r in Nc, Ec.
  set (en := (1 + u) ^ ups t * (eta * (keys_in t + rescaled t))) in *.
  assert (C : forall x, In x (paths t) -> (up x <= ups t /\ down x <= downs t)%nat).
  { intros x I. unfold ups, downs. assert (K := proj1 (Forall_forall _ _) (counts t) x I). cbv beta in K. lia. }
  assert (W01 : forall x, In x (paths t) -> 0 <= pweight x <= 1)
    by (intros x I; destruct (proj1 (Forall_forall _ _) (tree_weights t Hs) x I) as (z & e & _ & _ & _ & H & _); tauto).
  assert (Dn : (1 - u) ^ downs t * den (paths t) <= l + d).
  { apply Rle_trans with (denL (paths t)); [|lra]. unfold den, denL. rewrite <- sum_scal. apply sum_le; intros x I.
    rewrite Rmult_comm. apply Rmult_le_compat_l; [apply W01, I|]. apply down_mono, (C x I). }
  assert (Dl := down_range (downs t)). assert (Sp : 0 <= den (paths t)) by (apply sum_nonneg; intros; now apply W01).
  assert (G := up_ge_1 (ups t)).
  split; [split; [exact L1|]|].
  - apply abs_le in D. apply Rle_trans with (den (paths t) + denG (paths t) + d); [lra|]. apply Rplus_le_compat_r.
    unfold den, denG. rewrite <- sum_plus, keys_in_length.
    apply Rle_trans with (sum (fun _ => (1 + u) ^ downs t) (paths t)); [|rewrite sum_const; lra].
    apply sum_le; intros x I. specialize (C x I). specialize (W01 x I).
    assert (K : (1 + u) ^ down x <= (1 + u) ^ downs t) by (apply up_mono, C).
    assert (K1 := up_ge_1 (down x)). unfold g. nra.
  - assert (V : 0 <= vm).
    { destruct (paths t) as [|x ps] eqn:Ep; [now apply paths_not_empty in Ep|].
      eapply Rle_trans; [apply Rabs_pos|apply (Hv x); now left]. }
    assert (No : Rabs o <= vm * (1 + u) ^ ups t * den (paths t) + en).
    { assert (T : Rabs (num (paths t)) + numG (paths t) <= vm * (1 + u) ^ ups t * den (paths t)).
      { eapply Rle_trans; [apply Rplus_le_compat_r, sum_abs|]. unfold numG, den. rewrite <- sum_plus, <- sum_scal.
        apply sum_le; intros x I. specialize (C x I). specialize (W01 x I). specialize (Hv x I).
        assert (K : (1 + u) ^ up x <= (1 + u) ^ ups t) by (apply up_mono, C).
        rewrite Rabs_mult, (Rabs_right (pweight x)) by lra. set (av := Rabs (value (pkey x))) in *.
        assert (P : 0 <= av) by apply Rabs_pos. assert (K1 := up_ge_1 (up x)).
        replace (pweight x * av + pweight x * (g (up x) * av)) with (pweight x * (av * (1 + u) ^ up x))
          by (unfold g; ring).
        rewrite (Rmult_comm _ (pweight x)). apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat; lra. }
      replace o with ((o - num (paths t)) + num (paths t)) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. lra. }
    unfold Rdiv at 1. rewrite Rabs_mult, Rabs_inv, (Rabs_right l) by lra.
    apply (Rmult_le_reg_r l); [lra|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    eapply Rle_trans; [exact No|]. set (k := vm * (1 + u) ^ ups t / (1 - u) ^ downs t).
    assert (K0 : 0 <= k) by (apply Rmult_le_pos; [nra|left; now apply Rinv_0_lt_compat]).
    assert (Q := Rmult_le_compat_l _ _ _ K0 Dn).
    replace (k * ((1 - u) ^ downs t * den (paths t))) with (vm * (1 + u) ^ ups t * den (paths t)) in Q
      by (unfold k; field; lra).
    assert (D0 : 0 <= d) by lra. assert (kd : 0 <= k * d) by now apply Rmult_le_pos.
    assert (k * d <= k * d * l) by nra. assert (E0 : 0 <= en) by (unfold en; apply Rmult_le_pos; lra).
    assert (en <= en * l) by nra. lra.
Qed.

(* ---- The sizes of all parts -------------------------------------------------------------------------------------- *)

(* h, h': hN and hD at most; n keys, X rescaled parts. Each part stores at most Q, and its w is below. *)
Definition part_most h h' n X vm :=
  vm * magnify h h' * (1 + (1 + u) ^ h' * (eta * X)) + (1 + u) ^ h * (eta * (n + X)) + eta.
Definition stored_most h h' n X P vm :=
  P * (part_most h h' n X vm + (1 + u) ^ h' * (eta * X)) + (1 + u) ^ h' * n.

Fixpoint sized Q h' d t := match t with
  | Leaf _ _ _ => True | Add t t' => sized Q h' d t /\ sized Q h' d t' | Rescale _ _ t => sized Q h' d t
  | Normalise _ _ q b t => q <= Q /\ b <= (1 + u) ^ h' * keys_in t + d end.

Lemma stored_sized Q h' d t : 0 <= Q -> 0 <= d -> one_level t -> sized Q h' d t ->
  stored t <= normed t * (Q + d) + (1 + u) ^ h' * keys_in t.
Proof.
  intros PQ Pd. assert (G := up_ge_1 h').
  induction t as [i M w|t IH t' IH'|M a t IH|M a q b t IH]; cbn [one_level sized stored normed keys_in]; intros O S.
  - lra.
  - destruct O as [O O'], S as [S S']. specialize (IH O S). specialize (IH' O' S'). lra.
  - now apply IH.
  - destruct O as [O _], S as [S S']. destruct (norms_0 t O) as [-> ->]. lra.
Qed.

(* A tree whose q and b are no larger than they must be, otherwise the same. *)
Record same_but_sizes t t' : Prop := {
  same_paths : paths t' = paths t; same_shift : shift t' = shift t; same_adds : adds t' = adds t;
  same_rescales : rescales t' = rescales t; same_norms : norms t' = norms t; same_rescaled : rescaled t' = rescaled t;
  same_normed : normed t' = normed t; same_keys_in : keys_in t' = keys_in t;
  same_shifts_ok : shifts_ok t -> shifts_ok t'; same_one : one_level t -> one_level t' }.

Lemma tight_exists t l o : run t l o -> shifts_ok t -> one_level t -> forall h h' n X vm,
  (ups t <= h)%nat -> (downs t <= h')%nat -> keys_in t <= n -> rescaled t <= X -> 0 <= vm ->
  (forall x, In x (paths t) -> Rabs (value (pkey x)) <= vm) ->
  exists t', run t' l o /\ same_but_sizes t t' /\ sized (part_most h h' n X vm) h' ((1 + u) ^ h' * (eta * X)) t'.
Proof.
  assert (U := u_range). assert (Pe := eta_nonneg).
  induction 1 as [i M w o X0|t t' l l' o o' rl ro H IH H' IH' XL XO|i M w t l o rl ro H IH XL XO
    |M a t l o rl ro H IH XL XO|M a q b t l o w oc ro H IH Pl XL Lb XQ Q XO]; intros S O h h' n X vm Lh Lh' Ln LX Vm Hv.
  - exists (Leaf i M w). split; [now apply run_leaf|]. split; [now split|exact I].
  - destruct S as (S & S' & E), O as [O O'].
    assert (K := keys_in_1 t). assert (K' := keys_in_1 t'). assert (R := rescaled_nonneg t).
    assert (R' := rescaled_nonneg t').
    cbn [keys_in rescaled] in Ln, LX.
    destruct (IH S O h h' n X vm) as (s & Rs & Ss & Zs); try lra; try (unfold ups, downs in *; cbn in *; lia).
    { intros x I. apply (Hv (move 1 0 1 1 x)). cbn [paths]. apply in_map, in_app_iff. now left. }
    destruct (IH' S' O' h h' n X vm) as (s' & Rs' & Ss' & Zs'); try lra; try (unfold ups, downs in *; cbn in *; lia).
    { intros x I. apply (Hv (move 1 0 1 1 x)). cbn [paths]. apply in_map, in_app_iff. now right. }
    exists (Add s s'). split; [eapply run_add; eassumption|]. split; [|now split].
    destruct Ss, Ss'. split; cbn; try congruence; try (intros; tauto).
    intros (T & T' & Es). split; [auto|]. split; [auto|congruence].
  - destruct S as (S & S' & E), O as [O _].
    assert (K := keys_in_1 t). assert (R := rescaled_nonneg t). cbn [keys_in rescaled] in Ln, LX.
    destruct (IH S O h h' n X vm) as (s & Rs & Ss & Zs); try lra; try (unfold ups, downs in *; cbn in *; lia).
    { intros x I. apply (Hv (move 1 0 1 1 x)). cbn [paths]. apply in_map, in_app_iff. now left. }
    exists (Add s (Leaf i M w)). split; [eapply run_fma; eassumption|]. split; [|now split].
    destruct Ss. split; cbn; try congruence; try (intros; tauto).
    intros (T & T' & Es). split; [auto|]. split; [auto|congruence].
  - destruct S as (S & L & E). cbn [one_level] in O. cbn [keys_in rescaled] in Ln, LX.
    destruct (IH S O h h' n X vm) as (s & Rs & Ss & Zs); try lra; try (unfold ups, downs in *; cbn in *; lia).
    { intros x I. apply (Hv (move a 1 1 1 x)). cbn [paths]. now apply in_map. }
    exists (Rescale M a s). split; [eapply run_rescale; eassumption|]. split; [|exact Zs].
    destruct Ss. split; cbn; try congruence; try (intros; tauto).
    intros (T & T' & Es). split; [auto|]. now rewrite same_shift0.
  - destruct S as (S & L & E), O as [O T]. cbn [keys_in rescaled] in Ln, LX.
    assert (Hv' : forall x, In x (paths t) -> Rabs (value (pkey x)) <= vm).
    { intros x I. apply (Hv (move a 1 3 1 x)). cbn [paths]. now apply in_map. }
    destruct (part_upper t l o vm H S T O Hv') as [[L1 Lu] Ou].
    assert (R := rescaled_nonneg t). assert (K := keys_in_1 t).
    assert (Us : (ups t <= h - 3 /\ 3 <= h)%nat) by (unfold ups in *; cbn in *; lia).
    assert (Ds : (downs t <= h')%nat) by (unfold downs in *; cbn in *; lia).
    assert (T1 : eta * rescaled t <= eta * X) by (apply Rmult_le_compat_l; lra).
    assert (T0 : 0 <= eta * rescaled t) by (apply Rmult_le_pos; lra).
    assert (G := up_mono _ _ Ds). assert (G1 := up_ge_1 (downs t)).
    assert (T2 : (1 + u) ^ downs t * (eta * rescaled t) <= (1 + u) ^ h' * (eta * X)) by (apply Rmult_le_compat; lra).
    assert (T3 : 0 <= (1 + u) ^ downs t * (eta * rescaled t)) by (apply Rmult_le_pos; lra).
    set (d0 := (1 + u) ^ downs t * (eta * rescaled t)) in *. set (d := (1 + u) ^ h' * (eta * X)) in *.
    destruct E as (tx & Tx & Ex). assert (Ha := exp_of_negative _ _ Ex (not_above_0 _ _ _ Tx ltac:(lra))).
    exists (Normalise M a (Rabs oc) (a * l) t). split; [eapply run_normalise; try eassumption; lra|].
    split; [split; cbn; try reflexivity; intros; tauto|]. cbn [sized]. split.
    + assert (E1 := error _ _ _ XQ). unfold part_most. fold d.
      assert (Oc : Rabs oc <= (1 + u) * Rabs (o / l) + eta).
      { replace oc with ((oc - o / l) + o / l) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra. }
      eapply Rle_trans; [exact Oc|]. apply Rplus_le_compat_r.
      apply Rle_trans with ((1 + u) * (vm * (1 + u) ^ ups t / (1 - u) ^ downs t * (1 + d0)
        + (1 + u) ^ ups t * (eta * (keys_in t + rescaled t)))); [apply Rmult_le_compat_l; lra|].
      assert (P1 : (1 + u) * (1 + u) ^ ups t <= (1 + u) ^ h)
        by (apply (up_mono (Datatypes.S (ups t)) h); lia).
      assert (Dw := down_range (downs t)). assert (Dw' := down_range h'). assert (Dm := down_mono _ _ Ds).
      assert (Gu := up_ge_1 (ups t)).
      assert (M1 : (1 + u) * (1 + u) ^ ups t / (1 - u) ^ downs t <= magnify h h').
      { unfold magnify, Rdiv. apply Rmult_le_compat; [nra|left; apply Rinv_0_lt_compat; lra|exact P1|].
        apply Rinv_le_contravar; lra. }
      assert (M0 : 0 <= (1 + u) * (1 + u) ^ ups t / (1 - u) ^ downs t).
      { apply Rmult_le_pos; [nra|left; apply Rinv_0_lt_compat; lra]. }
      replace ((1 + u) * (vm * (1 + u) ^ ups t / (1 - u) ^ downs t * (1 + d0)
        + (1 + u) ^ ups t * (eta * (keys_in t + rescaled t))))
        with (vm * ((1 + u) * (1 + u) ^ ups t / (1 - u) ^ downs t) * (1 + d0)
          + (1 + u) * (1 + u) ^ ups t * (eta * (keys_in t + rescaled t))) by (field; lra).
      assert (V1 : vm * ((1 + u) * (1 + u) ^ ups t / (1 - u) ^ downs t) <= vm * magnify h h')
        by (apply Rmult_le_compat_l; lra).
      assert (V0 : 0 <= vm * ((1 + u) * (1 + u) ^ ups t / (1 - u) ^ downs t)) by (apply Rmult_le_pos; lra).
      apply Rplus_le_compat; [apply Rmult_le_compat; lra|].
      assert (0 <= eta * (keys_in t + rescaled t)) by (apply Rmult_le_pos; lra).
      apply Rmult_le_compat; [nra|assumption|exact P1|apply Rmult_le_compat_l; lra].
    + assert (A1 : a * l <= l) by nra. eapply Rle_trans; [exact A1|]. eapply Rle_trans; [exact Lu|].
      apply Rplus_le_compat; [|exact T2]. apply Rmult_le_compat_r; [lra|exact G].
Qed.

(* Theorem (o) for any tree with one level of normalised parts: what they store, from the counts. *)
Theorem one_level_pass_line t l o e top E vm r : run t l o -> shifts_ok t -> one_level t ->
  (exists x, In x (paths t) /\ computed x = shift t) ->
  (forall x, In x (paths t) -> Rabs (computed x - logit (pkey x)) <= e x) ->
  (forall x, In x (paths t) -> e x - (top - logit (pkey x)) <= E) ->
  (forall x, In x (paths t) -> Rabs (value (pkey x)) <= vm) ->
  0 < readme_den (data t e) top E (adds t) (norms t) (rescales t) (rescaled t) -> rounds eta (o / l) r ->
  Rabs (r - attention (map dkey (data t e))) <= readme_bound (data t e) top E (adds t) (norms t) (rescales t)
    (rescaled t) (stored_most (ups t) (downs t) (keys_in t) (rescaled t) (normed t) vm).
Proof.
  intros Hr Hs Ho Ht He HE Hv D X. assert (U := u_range). assert (Pe := eta_nonneg).
  assert (V0 : 0 <= vm).
  { destruct Ht as (x & I & _). eapply Rle_trans; [apply Rabs_pos|exact (Hv x I)]. }
  destruct (tight_exists t l o Hr Hs Ho (ups t) (downs t) (keys_in t) (rescaled t) vm) as (t' & Hr' & Sm & Sz);
    try lia; try lra; try assumption.
  destruct Sm as [Sp Ss Sa Srs Sn Sr Sd Sk So S1].
  assert (Dt : data t' e = data t e) by (unfold data; now rewrite Sp).
  assert (T := pass_line_stated t' l o e top E Hr' (So Hs)). rewrite Dt, Sp, Ss, Sa, Srs, Sn, Sr in T.
  eapply Rle_trans; [apply T; assumption|].
  assert (K := keys_in_1 t). assert (R := rescaled_nonneg t). assert (G := up_ge_1 (downs t)).
  assert (Gu := up_ge_1 (ups t)).
  assert (Er : 0 <= eta * rescaled t) by (apply Rmult_le_pos; lra).
  assert (d0 : 0 <= (1 + u) ^ downs t * (eta * rescaled t)) by (apply Rmult_le_pos; lra).
  assert (Q0 : 0 <= part_most (ups t) (downs t) (keys_in t) (rescaled t) vm).
  { unfold part_most. assert (0 <= vm * magnify (ups t) (downs t)).
    { apply Rmult_le_pos; [exact V0|]. assert (M := magnify_ge (ups t) (downs t)). lra. }
    assert (0 <= vm * magnify (ups t) (downs t) * (1 + (1 + u) ^ downs t * (eta * rescaled t)))
      by (apply Rmult_le_pos; lra).
    assert (0 <= (1 + u) ^ ups t * (eta * (keys_in t + rescaled t)))
      by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]). lra. }
  assert (St := stored_sized _ _ _ t' Q0 d0 (S1 Ho) Sz). rewrite Sd, Sk in St. fold (stored_most (ups t) (downs t)
    (keys_in t) (rescaled t) (normed t) vm) in St.
  unfold readme_bound. apply Rplus_le_compat_r, Rplus_le_compat_r, Rmult_le_compat_l; [lra|].
  apply Rplus_le_compat_l. unfold readme_U.
  assert (G1 := up_ge_1 (1 + adds t + rescales t + 2 * norms t)). apply Rmult_le_compat_l; [lra|].
  assert (eta * stored t' <= eta * stored_most (ups t) (downs t) (keys_in t) (rescaled t) (normed t) vm)
    by (apply Rmult_le_compat_l; assumption). lra.
Qed.

(* Theorem: README.md's U covers that; P (n + 2 X + 1) eta is far below 1. *)
Theorem page_U_covers_one h h' ab n X P vm o0 : (h' < h)%nat -> 0 <= ab -> 0 <= n -> 0 <= X -> 0 <= P -> 0 <= vm ->
  0 <= o0 -> eta * X <= 1 -> P * (n + 2 * X + 1) * eta <= / 2 ->
  (1 + u) * ((1 + u) ^ h * (ab + (eta * (n + X + stored_most h h' n X P vm) + oadd * (n - 1)) + eta * X * o0)) + eta
    <= page_U h h' ab n X P 1 vm o0.
Proof.
  intros Lh Pa Pn PX PP Pv Po Sx Small. unfold page_U, stored_most, part_most. rewrite ieee. cbv zeta.
  assert (Pe := eta_nonneg). assert (U := u_range). assert (M1 := magnify_ge h h'). assert (Gh := up_ge_1 h).
  assert (Gh' := up_ge_1 h'). set (M := magnify h h') in *.
  assert (K0 := magnify_square h h' 0 ltac:(lia)). rewrite pow_O in K0.
  assert (K1 := magnify_square h h' (S h) ltac:(lia)). assert (K2 := magnify_square h h' (S h + h') ltac:(lia)).
  assert (K3 := magnify_square h h' (h + h) ltac:(lia)). rewrite pow_add in K2, K3. fold M in K0, K1, K2, K3.
  change ((1 + u) ^ S h) with ((1 + u) * (1 + u) ^ h) in *. set (M2 := M ^ 2) in *.
  set (a := (1 + u) ^ h) in *. set (a' := (1 + u) ^ h') in *. set (w := (1 + u) * a) in *.
  clearbody M2 M a a'. assert (W1 : 1 <= w) by (unfold w; nra). assert (Mp : 0 <= M) by lra.
  assert (X1 : 0 <= X * (1 + o0)) by (apply Rmult_le_pos; lra).
  assert (T1 : w * (ab + eta * (n + X * (1 + o0))) <= M2 * (ab + eta * (n + X * (1 + o0)))).
  { apply Rmult_le_compat_r; [|exact K1]. assert (0 <= eta * (n + X * (1 + o0))) by (apply Rmult_le_pos; lra). lra. }
  assert (T2 : w * a' * (eta * n) <= M2 * (eta * n)) by (apply Rmult_le_compat_r; [now apply Rmult_le_pos|exact K2]).
  assert (Q0 : 0 <= eta * (P * (vm * M))) by (repeat apply Rmult_le_pos; lra).
  assert (T3 : w * (eta * (P * (vm * M))) <= M2 * (eta * (P * (vm * M)))) by (apply Rmult_le_compat_r; assumption).
  assert (Ex : 0 <= eta * X) by now apply Rmult_le_pos.
  assert (T4 : w * a' * (eta * (P * (vm * M)) * (eta * X)) <= M2 * (eta * (P * (vm * M)))).
  { apply Rmult_le_compat; [apply Rmult_le_pos; lra|now apply Rmult_le_pos|exact K2|].
    rewrite <- (Rmult_1_r (eta * (P * (vm * M)))) at 2. apply Rmult_le_compat_l; assumption. }
  assert (Wa : w * a <= 2 * M2).
  { unfold w. rewrite Rmult_assoc. apply Rmult_le_compat; [lra|nra|lra|exact K3]. }
  assert (Ep : 0 <= eta * (P * eta)) by (repeat apply Rmult_le_pos; assumption).
  assert (T5 : w * a * (eta * (P * eta) * (n + X)) <= 2 * M2 * (eta * (P * eta) * (n + X)))
    by (apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|exact Wa]).
  assert (T6 : w * (eta * (P * eta)) <= 2 * M2 * (eta * (P * eta))) by (apply Rmult_le_compat_r; [exact Ep|lra]).
  assert (T7 : w * a' * (eta * (P * eta) * X) <= 2 * M2 * (eta * (P * eta) * X))
    by (apply Rmult_le_compat_r; [now apply Rmult_le_pos|lra]).
  assert (T8 : 2 * M2 * eta * (P * (n + 2 * X + 1) * eta) <= 2 * M2 * eta * / 2).
  { apply Rmult_le_compat_l; [|exact Small]. apply Rmult_le_pos; lra. }
  assert (T9 := Rmult_le_compat_l _ _ _ Pe K0).
  assert (T10 : 0 <= M2 * (eta * (X * (1 + o0)))) by (apply Rmult_le_pos; [lra|now apply Rmult_le_pos]).
  assert (T11 : 0 <= M2 * (eta * (P * (vm * M)))) by (apply Rmult_le_pos; lra).
  apply Rle_trans with (w * (ab + eta * (n + X * (1 + o0))) + w * a' * (eta * n) + w * (eta * (P * (vm * M)))
    + w * a' * (eta * (P * (vm * M)) * (eta * X)) + w * a * (eta * (P * eta) * (n + X)) + w * (eta * (P * eta))
    + w * a' * (eta * (P * eta) * X) + eta); [right; unfold w; ring|].
  apply Rle_trans with (M2 * (ab + eta * (n + X * (1 + o0))) + M2 * (eta * n) + 2 * (M2 * (eta * (P * (vm * M))))
    + 2 * M2 * eta * (P * (n + 2 * X + 1) * eta) + M2 * eta); [|nra].
  replace (2 * M2 * eta * (P * (n + 2 * X + 1) * eta)) with (2 * M2 * (eta * (P * eta) * (n + X))
    + 2 * M2 * (eta * (P * eta)) + 2 * M2 * (eta * (P * eta) * X)) by ring. lra.
Qed.
End OneLevel.
