(* The pass line as README.md states it: (o) with hN_j, hD_j, Z_j, U and Omega from the counts of the tree. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound Counts.
Import ListNotations.
Open Scope R_scope.

Section PassLine.
Context {A : arithmetic} {B : functions}.

(* ---- The bound grows with its ingredients ------------------------------------------------------------------------ *)

Definition le_term x y :=
  term_key x = term_key y /\ Z x <= Z y /\ f x <= f y /\ (hN x <= hN y)%nat /\ (hD x <= hD y)%nat.

Lemma sum_le2 a b xs ys : Forall2 le_term xs ys -> (forall x y, le_term x y -> a x <= b y) -> sum a xs <= sum b ys.
Proof. intros H L. induction H as [|x y xs ys H _ IH]; simpl; [lra|]. specialize (L x y H). lra. Qed.

Lemma same_keys xs ys : Forall2 le_term xs ys -> map term_key xs = map term_key ys.
Proof. induction 1 as [|x y xs ys [K _] _ IH]; simpl; congruence. Qed.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros L. destruct (Req_dec x y) as [->|]; [lra|]. left; apply exp_increasing; lra. Qed.

Section Grow.
Variables xs ys : list term.
Hypothesis le : Forall2 le_term xs ys.
Hypothesis some_key : xs <> [].

Lemma p_same x y : le_term x y -> p xs x = p ys y /\ 0 < p xs x.
Proof.
  intros (K & _). unfold p, s. rewrite K, (same_keys xs ys le). split; [reflexivity|].
  apply Rdiv_lt_0_compat; [apply exp_pos|]. apply mass_pos. rewrite <- (same_keys xs ys le).
  intros E; apply some_key. now apply map_eq_nil in E.
Qed.

Lemma v_same x y : le_term x y -> v x = v y.
Proof. intros (K & _). unfold v; now rewrite K. Qed.

Lemma Fnum_grows : Fnum xs <= Fnum ys.
Proof.
  unfold Fnum. rewrite (same_keys xs ys le). set (O := attention _).
  apply Rplus_le_compat; apply sum_le2; try exact le; intros x y L; destruct (p_same x y L) as [<- P];
    rewrite (v_same x y L); destruct L as (_ & HZ & _ & HN & HD); assert (E := exp_le _ _ HZ).
  - apply Rmult_le_compat_r; [apply Rabs_pos|]. apply Rmult_le_compat_l; lra.
  - assert (G := Rmult_le_compat_r _ _ _ (Rabs_pos (v y)) (g_mono _ _ HN)).
    assert (G' := Rmult_le_compat_r _ _ _ (Rabs_pos O) (g_mono _ _ HD)).
    assert (N := Rmult_le_pos _ _ (g_nonneg (hN x)) (Rabs_pos (v y))).
    assert (N' := Rmult_le_pos _ _ (g_nonneg (hD x)) (Rabs_pos O)). assert (Q := exp_pos (Z x)).
    apply Rmult_le_compat; [nra|lra|nra|lra].
Qed.

Lemma Fden_shrinks : Fden ys <= Fden xs.
Proof.
  apply Ropp_le_cancel. unfold Fden.
  replace (- sum _ xs) with (sum (fun x => -1 * (p xs x * exp (- Z x) * (1 - u) ^ hD x)) xs)
    by (rewrite sum_scal; ring).
  replace (- sum _ ys) with (sum (fun x => -1 * (p ys x * exp (- Z x) * (1 - u) ^ hD x)) ys)
    by (rewrite sum_scal; ring).
  apply sum_le2; [exact le|]. intros x y L. destruct (p_same x y L) as [<- P].
  destruct L as (_ & HZ & _ & _ & HD). assert (E := exp_le (- Z y) (- Z x) ltac:(lra)).
  assert (D := down_mono _ _ HD). assert (Dr := down_range (hD x)). assert (Q := exp_pos (- Z y)).
  assert (Dr' := down_range (hD y)).
  enough (p xs x * exp (- Z y) * (1 - u) ^ hD y <= p xs x * exp (- Z x) * (1 - u) ^ hD x) by lra.
  apply Rmult_le_compat; [nra|lra|nra|lra].
Qed.

Lemma Fup_grows : Fup xs <= Fup ys.
Proof.
  apply sum_le2; [exact le|]. intros x y L. destruct (p_same x y L) as [<- P].
  destruct L as (_ & HZ & _ & _ & HD). assert (E := exp_le _ _ HZ). assert (Q := exp_pos (Z x)).
  assert (G := up_mono _ _ HD). assert (G' := up_ge_1 (hD x)).
  apply Rmult_le_compat; [nra|lra|nra|lra].
Qed.

Lemma f_grows : sum f xs <= sum f ys.
Proof. apply sum_le2; [exact le|]. intros x y (_ & _ & H & _). exact H. Qed.

End Grow.

(* ---- As README.md states it -------------------------------------------------------------------------------------- *)

(* What the judge knows of a key: the key, the bound e_j of its logit, its number of exponentials R_j. *)
Record datum := Datum { dkey : key; de : R; dR : nat }.

(* Z_j, hN_j, hD_j from a additions and nl normalised levels; top: the largest exact logit; E >= max (e_j - gap_j). *)
Definition readme_terms top E a nl := map (fun d => Term (dkey d) 0
  (de d + u * (top - logit (dkey d) + de d + E) + INR (dR d) * eps')
  (eta_e * INR (dR d) * (1 + eps) ^ (dR d - 1)) (a + dR d + 2 * nl) (a + dR d - 1)).

(* F, Omega and U from the counts: rs rescales on a way, X rescaled parts in all, St what normalised parts store. *)
Section Stated.
Variables (ds : list datum) (top E : R) (a nl rs : nat) (X St : R).
Let xs := readme_terms top E a nl ds.
Let O := attention (map dkey ds).
Let n := INR (length ds).
Definition readme_Omega := (sum f xs + (1 + u) ^ (a + rs) * (eta * X)) * exp (top + E - lse (map dkey ds)).
Definition readme_den := Fden xs - readme_Omega.
Definition readme_F := Fnum xs / readme_den.
Definition readme_U := (1 + u) ^ (1 + a + rs + 2 * nl)
  * (sum (fun x => f x * (Rabs (v x) + Rabs O)) xs + (eta * (n + X + St) + oadd * (n - 1)) + eta * X * Rabs O).
Definition readme_bound := (1 + u) * (readme_F + readme_U) + u * Rabs O + eta.
End Stated.

Section OfTree.
Variables (t : tree) (l o : R) (e : path -> R) (top E : R).
Hypothesis ran : run t l o.
Hypothesis shifts : shifts_ok t.
Hypothesis top_key : exists x, In x (paths t) /\ computed x = shift t.
Hypothesis logits : forall x, In x (paths t) -> Rabs (computed x - logit (pkey x)) <= e x.
Hypothesis E_max : forall x, In x (paths t) -> e x - (top - logit (pkey x)) <= E.

Definition data := map (fun x => Datum (pkey x) (e x) (met x)) (paths t).

Notation xs := (terms (README_Z e top E) t).
Notation ys := (readme_terms top E (adds t) (norms t) data).
Notation O := (attention (map dkey data)).
Notation U := (readme_U data top E (adds t) (norms t) (rescales t) (rescaled t) (stored t)).
Notation Om := (readme_Omega data top E (adds t) (norms t) (rescales t) (rescaled t)).

Lemma data_keys : map dkey data = tree_keys t.
Proof. unfold data. now rewrite map_map. Qed.

Lemma terms_le : Forall2 le_term xs ys.
Proof.
  unfold terms, readme_terms, data. assert (C := counts t). revert C. generalize (paths t) as ps.
  induction ps as [|x ps IH]; intros C; [constructor|]. apply Forall_inv in C as C1. apply Forall_inv_tail in C.
  constructor; [|now apply IH]. unfold le_term; cbn [term_key Z f hN hD dkey de dR].
  split; [reflexivity|]. split; [unfold README_Z; lra|]. split; [apply weight_abs_bound|]. lia.
Qed.

Lemma f_nonneg_terms x : In x xs -> 0 <= f x.
Proof. intros I. apply in_map_iff in I. destruct I as (y & <- & _). apply weight_abs_bound. Qed.

Lemma V_stated : 0 <= V xs (EN t) (ED t) <= U.
Proof.
  assert (Hu := shifts_unit_weights t shifts). assert (P := eta_nonneg).
  destruct (EN_ED_nonneg t l o ran Hu) as [EN0 ED0].
  assert (Nn := EN_bound t l o ran Hu). assert (Dn := ED_bound t).
  assert (Up := up_mono (downs t) (ups t) ltac:(unfold downs, ups; lia)).
  unfold V. rewrite terms_keys, <- data_keys. set (o0 := Rabs O). assert (Po : 0 <= o0) by apply Rabs_pos.
  assert (OD := Rmult_le_pos _ _ Po ED0).
  split.
  { enough (0 <= sum (fun x => f x * (Rabs (v x - O) + g (hN x) * Rabs (v x) + g (hD x) * o0)) xs) by lra.
    apply sum_nonneg; intros x I. apply Rmult_le_pos; [now apply f_nonneg_terms|].
    assert (G1 := Rmult_le_pos _ _ (g_nonneg (hN x)) (Rabs_pos (v x))).
    assert (G2 := Rmult_le_pos _ _ (g_nonneg (hD x)) Po). assert (G3 := Rabs_pos (v x - O)). lra. }
  unfold readme_U. fold o0. change (1 + adds t + rescales t + 2 * norms t)%nat with (ups t).
  replace (INR (length data)) with (keys_in t) by (unfold data; rewrite map_length; apply keys_in_length).
  fold (EN_closed t).
  assert (D1 : o0 * ED t <= (1 + u) ^ ups t * (eta * rescaled t * o0)).
  { rewrite (Rmult_comm o0), <- Rmult_assoc. apply Rmult_le_compat_r; [exact Po|].
    eapply Rle_trans; [exact Dn|]. apply Rmult_le_compat_r; [|exact Up].
    apply Rmult_le_pos; [exact P|apply rescaled_nonneg]. }
  enough (T : sum (fun x => f x * (Rabs (v x - O) + g (hN x) * Rabs (v x) + g (hD x) * o0)) xs
    <= (1 + u) ^ ups t * sum (fun x => f x * (Rabs (v x) + o0)) ys) by lra.
  unfold terms, readme_terms, data. rewrite !sum_map, <- sum_scal. apply sum_le; intros x I.
  unfold v; cbn [f term_key hN hD dkey dR].
  destruct (proj1 (Forall_forall _ _) (counts t) x I) as (C1 & C2 & C3).
  set (vx := value (pkey x)). destruct (weight_abs_bound (met x)) as [F0 F1].
  assert (K1 : (1 + u) ^ up x <= (1 + u) ^ ups t) by (apply up_mono; unfold ups; lia).
  assert (K2 : (1 + u) ^ down x <= (1 + u) ^ ups t) by (apply up_mono; unfold ups; lia).
  fold data. assert (Tr : Rabs (vx - O) <= Rabs vx + o0).
  { unfold Rminus. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. unfold o0; lra. }
  assert (Pv := Rabs_pos vx). unfold g.
  assert (K3 := Rmult_le_compat_r _ _ _ Pv K1). assert (K4 := Rmult_le_compat_r _ _ _ Po K2).
  apply Rle_trans with (weight_abs (met x) * ((1 + u) ^ ups t * (Rabs vx + o0))).
  - apply Rmult_le_compat_l; lra.
  - assert (Q : 0 <= (1 + u) ^ ups t * (Rabs vx + o0)) by (assert (G := up_ge_1 (ups t)); nra). nra.
Qed.

Lemma shift_at_most : shift t <= top + E.
Proof.
  destruct top_key as (x & I & <-). assert (H := logits x I). apply abs_le in H. assert (H' := E_max x I). lra.
Qed.

Lemma Omega_stated : Omega xs (shift t) (ED t) <= Om.
Proof.
  unfold Omega, readme_Omega. rewrite terms_keys, <- data_keys. assert (S := shift_at_most).
  assert (H := f_grows _ _ terms_le). assert (D := ED_bound t). unfold downs in D.
  destruct (EN_ED_nonneg t l o ran (shifts_unit_weights t shifts)) as [_ ED0].
  assert (F0 : 0 <= sum f xs) by (apply sum_nonneg; exact f_nonneg_terms).
  apply Rmult_le_compat; [lra|left; apply exp_pos|lra|apply exp_le; lra].
Qed.

(* Theorem: the pass line. A rung that is the tree t, on keys whose logits are within e_j and whose largest computed
   logit is the last shift, is within README.md's bound (o) of softmax attention, with the counts of its own tree. *)
Theorem pass_line_stated r : 0 < readme_den data top E (adds t) (norms t) (rescales t) (rescaled t) ->
  rounds eta (o / l) r ->
  Rabs (r - O) <= readme_bound data top E (adds t) (norms t) (rescales t) (rescaled t) (stored t).
Proof.
  unfold readme_den. intros P X. assert (Hu := u_range). assert (Oms := Omega_stated).
  assert (Ne := terms_not_empty (README_Z e top E) t).
  assert (Fd := Fden_shrinks _ _ terms_le Ne). assert (Fn := Fnum_grows _ _ terms_le Ne).
  assert (Q : 0 < Fden xs - Omega xs (shift t) (ED t)) by lra.
  assert (Hl : 1 <= l).
  { destruct top_key as (x0 & I0 & E0). 
    apply (denominator_at_least_1 t l o ran shifts), (top_exists t x0); assumption. }
  rewrite data_keys. unfold readme_bound. rewrite data_keys.
  eapply Rle_trans; [exact (pass_line t l o e top E r ran shifts top_key logits E_max Q X)|].
  apply Rplus_le_compat_r, Rplus_le_compat_r, Rmult_le_compat_l; [lra|].
  destruct V_stated as [V0 V1]. apply Rplus_le_compat.
  - unfold F, readme_F, readme_den, Rdiv.
    assert (N0 : 0 <= Fnum xs).
    { apply Fnum_nonneg; [exact Ne|]. intros x I. apply in_map_iff in I. destruct I as (y & <- & I). cbn [Z].
      destruct top_key as (x0 & I0 & E0).
      assert (T := README_Z_bound e top E t x0 shifts logits E_max I0 E0 y I).
      destruct (proj1 (Forall_forall _ _) (tree_weights t shifts) y I) as (z & _ & _ & Hz & _).
      eapply Rle_trans; [apply (Rabs_pos z)|]. lra. }
    apply Rmult_le_compat; [exact N0|left; now apply Rinv_0_lt_compat|exact Fn|apply Rinv_le_contravar; lra].
  - apply Rle_trans with (V xs (EN t) (ED t)); [|exact V1]. unfold Rdiv.
    rewrite <- (Rmult_1_r (V _ _ _)) at 2. apply Rmult_le_compat_l; [exact V0|].
    rewrite <- Rinv_1. apply Rinv_le_contravar; lra.
Qed.

End OfTree.
End PassLine.
