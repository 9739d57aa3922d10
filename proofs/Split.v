(* Rung 05, split-KV: two stages as functions of their rounding, the tree that they are, and what normalised partials
   store. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound Counts PassLine Grow Programs.
Import ListNotations.
Open Scope R_scope.

(* A split: its shift, and its keys, at least one. *)
Record part := Part { pm : R; pfirst : input; prest : list input }.
Definition pkeys p := pfirst p :: prest p.
Definition all_keys ps := concat (map pkeys ps).

Section Split.
Context {A : arithmetic} {B : functions}.

(* ---- The size of a normalised partial ---------------------------------------------------------------------------- *)

Lemma sums_upper t l o vm : run t l o -> shifts_ok t -> has_top t -> rescaled t = 0 ->
  (forall x, In x (paths t) -> Rabs (value (pkey x)) <= vm) ->
  l <= (1 + u) ^ downs t * keys_in t /\
  Rabs (o / l) <= vm * (1 + u) ^ ups t / (1 - u) ^ downs t + (1 + u) ^ ups t * EN_closed t.
Proof.
  intros Hr Hs Ht X Hv. assert (Hu := shifts_unit_weights t Hs). assert (U := u_range).
  destruct (tree_sums t l o Hr Hu) as (N & D & L & _). assert (Nc := EN_bound t l o Hr Hu).
  assert (Ec := EN_closed_nonneg t l o Hr Hu). assert (L1 := denominator_at_least_1 t l o Hr Hs Ht).
  assert (ED0 : ED t = 0).
  { assert (H := ED_bound t). rewrite X, !Rmult_0_r in H. destruct (EN_ED_nonneg t l o Hr Hu). now apply Rle_antisym. }
  rewrite ED0 in D, L.
  assert (C : forall x, In x (paths t) -> (up x <= ups t /\ down x <= downs t)%nat).
  { intros x I. unfold ups, downs. assert (K := proj1 (Forall_forall _ _) (counts t) x I). cbv beta in K. lia. }
  assert (W01 : forall x, In x (paths t) -> 0 <= pweight x <= 1)
    by (intros x I; destruct (proj1 (Forall_forall _ _) (tree_weights t Hs) x I) as (z & e & _ & _ & _ & H & _); tauto).
  assert (Dn : (1 - u) ^ downs t * den (paths t) <= l).
  { apply Rle_trans with (denL (paths t)); [|lra]. unfold den, denL. rewrite <- sum_scal. apply sum_le; intros x I.
    rewrite Rmult_comm. apply Rmult_le_compat_l; [apply W01, I|]. apply down_mono, (C x I). }
  assert (Dl := down_range (downs t)). assert (S0 : 0 <= den (paths t)) by (apply sum_nonneg; intros; now apply W01).
  split.
  - apply abs_le in D. apply Rle_trans with (den (paths t) + denG (paths t)); [lra|].
    unfold den, denG. rewrite <- sum_plus, keys_in_length.
    apply Rle_trans with (sum (fun _ => (1 + u) ^ downs t) (paths t)); [|rewrite sum_const; lra].
    apply sum_le; intros x I. specialize (C x I). specialize (W01 x I).
    assert (K : (1 + u) ^ down x <= (1 + u) ^ downs t) by (apply up_mono, C).
    assert (K1 := up_ge_1 (down x)). unfold g. nra.
  - assert (No : Rabs o <= vm * (1 + u) ^ ups t * den (paths t) + (1 + u) ^ ups t * EN_closed t).
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
    eapply Rle_trans; [exact No|].
    assert (E0 : 0 <= (1 + u) ^ ups t * EN_closed t) by (assert (G := up_ge_1 (ups t)); nra).
    assert (V0 : 0 <= vm * (1 + u) ^ ups t / (1 - u) ^ downs t).
    { destruct (paths t) as [|x ps] eqn:Ep; [now apply paths_not_empty in Ep|].
      assert (0 <= vm) by (eapply Rle_trans; [apply Rabs_pos|apply (Hv x); now left]).
      apply Rmult_le_pos; [assert (G := up_ge_1 (ups t)); nra|left; now apply Rinv_0_lt_compat]. }
    assert (Q := Rmult_le_compat_l _ _ _ V0 Dn).
    replace (vm * (1 + u) ^ ups t / (1 - u) ^ downs t * ((1 - u) ^ downs t * den (paths t)))
      with (vm * (1 + u) ^ ups t * den (paths t)) in Q by (field; lra). nra.
Qed.

(* ---- The program ------------------------------------------------------------------------------------------------- *)

Variables fl ex : R -> R.
Hypothesis fl_op : forall x, rounds eta x (fl x).
Hypothesis fl_add : forall a b, fmt a -> fmt b -> rounds 0 (a + b) (fl (a + b)).
Hypothesis fl_sub : forall a b, fmt a -> fmt b -> rounds 0 (a - b) (fl (a - b)).
Hypothesis ex_ok : forall x, fmt x -> x <= 0 -> exps x (ex x).

(* Stage 1: each split attends to its keys and divides once by its own l. Stage 2: weights exp(m_s - m) l_s, added. *)
Definition part_l p := fst (attend fl ex (pm p) (pkeys p)).
Definition part_o p := fl (snd (attend fl ex (pm p) (pkeys p)) / part_l p).
Definition part_weight M p := fl (ex (fl (pm p - M)) * part_l p).
Definition add_part M (lo : R * R) p := (fl (fst lo + part_weight M p), fl (snd lo + fl (part_weight M p * part_o p))).
Definition combine M ps := fold_left (add_part M) ps (0, 0).

Definition part_ok M p := fmt (pm p) /\ pm p <= M /\ Forall (good (pm p)) (pkeys p) /\
  exists y, In y (pkeys p) /\ shat y = pm p.

(* ---- Its tree ---------------------------------------------------------------------------------------------------- *)

Definition part_tree p := comb fl ex (pm p) (Programs.leaf fl ex (pm p) (pfirst p)) (prest p).
Definition node M p := let a := ex (fl (pm p - M)) in Normalise M a (Rabs (part_o p)) (a * part_l p) (part_tree p).
Definition nodes M t ps := fold_left (fun t p => Add t (node M p)) ps t.

Lemma part_tree_ok M p : part_ok M p -> run (part_tree p) (part_l p) (snd (attend fl ex (pm p) (pkeys p))) /\
  shifts_ok (part_tree p) /\ shift (part_tree p) = pm p /\ has_top (part_tree p).
Proof.
  intros (F & L & G & y & Iy & Ey).
  destruct (attend_run fl ex fl_op fl_add fl_sub ex_ok (pm p) (pfirst p) (prest p) F G) as (Hr & Hs & Es & _).
  split; [exact Hr|]. split; [exact Hs|]. split; [exact Es|].
  assert (K := comb_known fl ex (pm p) (prest p) (Programs.leaf fl ex (pm p) (pfirst p))). fold (part_tree p) in K.
  destruct (known_paths (part_tree p) y) as (q & Iq & Eq).
  { rewrite K, map_app, map_map, map_id. exact Iy. }
  apply (top_exists _ q Hs Iq). unfold computed. rewrite Eq, Ey. symmetry; exact Es.
Qed.

Lemma node_ok M p : fmt M -> part_ok M p -> run (node M p) (part_weight M p) (fl (part_weight M p * part_o p)) /\
  shifts_ok (node M p) /\ shift (node M p) = M /\ fmt (part_weight M p).
Proof.
  intros HM P. destruct (part_tree_ok M p P) as (Hr & Hs & Es & Ht). destruct P as (F & L & _).
  destruct (exp_of_fl fl ex fl_op fl_sub ex_ok (pm p) M F HM L) as [X _].
  split; [|split; [|split; [reflexivity|apply (fmt_fl fl fl_op)]]].
  - apply (run_normalise M _ _ _ (part_tree p) (part_l p) (snd (attend fl ex (pm p) (pkeys p))) _ (part_o p));
      try apply fl_op.
    + exact Hr.
    + assert (T := denominator_at_least_1 _ _ _ Hr Hs Ht). lra.
    + lra.
    + lra.
  - split; [exact Hs|]. rewrite Es. split; [exact L|exact X].
Qed.

Lemma node_known M p : known (node M p) = map (fun x => (x, 2%nat)) (pkeys p).
Proof.
  unfold node. rewrite known_normalise. unfold part_tree. rewrite comb_known, map_app, map_map. reflexivity.
Qed.

Lemma node_counts M p : adds (node M p) = length (prest p) /\ rescales (node M p) = 1%nat /\ norms (node M p) = 1%nat /\
  rescaled (node M p) = 1 /\ stored (node M p) = Rabs (part_o p) + ex (fl (pm p - M)) * part_l p.
Proof.
  unfold node; cbn [adds rescales norms rescaled stored]. unfold part_tree.
  destruct (comb_counts fl ex (pm p) (prest p) (Programs.leaf fl ex (pm p) (pfirst p))) as (-> & -> & -> & -> & ->).
  cbn [Programs.leaf adds rescales norms rescaled stored]. repeat split; try lia; ring.
Qed.

Lemma nodes_run M ps : fmt M -> Forall (part_ok M) ps -> forall t l o, run t l o -> shifts_ok t -> shift t = M ->
  fmt l -> fmt o -> let lo := fold_left (add_part M) ps (l, o) in
  run (nodes M t ps) (fst lo) (snd lo) /\ shifts_ok (nodes M t ps) /\ shift (nodes M t ps) = M.
Proof.
  intros HM. induction ps as [|p ps IH]; intros G t l o Hr Hs Es Hl Ho; [now repeat split|].
  apply Forall_cons_iff in G. destruct G as [G Gs]. destruct (node_ok M p HM G) as (Nr & Ns & Ne & Nf).
  apply (IH Gs (Add t (node M p))); try apply (fmt_fl fl fl_op); [| |exact Es]; cbn [fst snd].
  - eapply run_add; [exact Hr|exact Nr|now apply fl_add|].
    apply (fl_oadd fl fl_add); [exact Ho|apply (fmt_fl fl fl_op)].
  - split; [exact Hs|]. split; [exact Ns|exact Es].
Qed.

Lemma nodes_known M ps : forall t, known (nodes M t ps) = known t ++ map (fun x => (x, 2%nat)) (all_keys ps).
Proof.
  induction ps as [|p ps IH]; intros t; [cbn; now rewrite app_nil_r|].
  change (nodes M t (p :: ps)) with (nodes M (Add t (node M p)) ps). unfold all_keys; cbn [map concat].
  rewrite IH, known_add, node_known, map_app, <- app_assoc. reflexivity.
Qed.

(* C: the most keys of a split. *)
Lemma nodes_counts M C ps : Forall (fun p => length (pkeys p) <= C)%nat ps -> forall t, (adds t <= C - 1)%nat ->
  rescales t = 1%nat -> norms t = 1%nat ->
  (adds (nodes M t ps) <= C - 1 + length ps)%nat /\ rescales (nodes M t ps) = 1%nat /\ norms (nodes M t ps) = 1%nat /\
  rescaled (nodes M t ps) = rescaled t + INR (length ps) /\
  stored (nodes M t ps) = stored t + sum (fun p => stored (node M p)) ps.
Proof.
  assert (Gen : forall ps k, Forall (fun p => length (pkeys p) <= C)%nat ps -> forall t, (adds t <= C - 1 + k)%nat ->
    rescales t = 1%nat -> norms t = 1%nat ->
    (adds (nodes M t ps) <= C - 1 + (k + length ps))%nat /\ rescales (nodes M t ps) = 1%nat
    /\ norms (nodes M t ps) = 1%nat
    /\ rescaled (nodes M t ps) = rescaled t + INR (length ps)
    /\ stored (nodes M t ps) = stored t + sum (fun p => stored (node M p)) ps).
  { clear ps. induction ps as [|p ps IH]; intros k G t Ha Hr Hn; [cbn; repeat split; try lia; lra|].
    apply Forall_cons_iff in G. destruct G as [G Gs]. unfold pkeys in G; cbn [length] in G.
    change (nodes M t (p :: ps)) with (nodes M (Add t (node M p)) ps).
    destruct (node_counts M p) as (N1 & N2 & N3 & N4 & N5).
    destruct (IH (S k) Gs (Add t (node M p))) as (R1 & R2 & R3 & R4 & R5).
    - cbn [adds]. rewrite N1. lia.
    - cbn [rescales]. rewrite N2, Hr. reflexivity.
    - cbn [norms]. rewrite N3, Hn. reflexivity.
    - cbn [length sum fold_right]. rewrite R4, R5, S_INR. cbn [rescaled stored]. rewrite N4.
      fold (sum (fun p => stored (node M p)) ps). repeat split; try assumption; try lia; ring. }
  intros G t Ha Hr Hn. exact (Gen ps 0%nat G t ltac:(lia) Hr Hn).
Qed.

End Split.
