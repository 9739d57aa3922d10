(* The log-sum-exp that rungs 02 to 06 write: fl(m + lg(l)), lg the logarithm that is called. *)
From Coq Require Import Reals Lra Lia List Permutation.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound Counts PassLine Lse Grow.
From FD Require Import Programs Online Split Rung05 Tiled Threads.
Import ListNotations.
Open Scope R_scope.

Section LseRungs.
Context {A : arithmetic} {B : functions}.
Variables fl ex lg : R -> R.
Hypothesis fl_op : forall x, rounds eta x (fl x).
Hypothesis fl_add : forall a b, fmt a -> fmt b -> rounds 0 (a + b) (fl (a + b)).
Hypothesis fl_sub : forall a b, fmt a -> fmt b -> rounds 0 (a - b) (fl (a - b)).
Hypothesis ex_ok : forall x, fmt x -> x <= 0 -> exps x (ex x).
(* H4. *)
Hypothesis lg_ok : forall x, fmt x -> 1 <= x -> fmt (lg x) /\ Rabs (lg x - ln x) <= eps_l * Rabs (ln x).

(* lse_stated for a tree whose keys are known. *)
Lemma tree_lse t l o top E : run t l o -> shifts_ok t -> fmt l -> fmt (shift t) ->
  (exists x, In x (map fst (known t)) /\ shat x = shift t) ->
  (exists x, In x (map fst (known t)) /\ logit (ikey x) = top) ->
  logits_ok (map fst (known t)) -> E_ok top E (map fst (known t)) ->
  let ds := map datum_of (known t) in
  0 < readme_den ds top E (adds t) (norms t) (rescales t) (rescaled t) ->
  Rabs (fl (shift t + lg l) - lse (map dkey ds))
    <= readme_lse_bound ds top E (adds t) (norms t) (rescales t) (rescaled t).
Proof.
  intros Hr Hs Fl Fs (x & I & Ex) (x' & I' & Ex') HL HE ds. unfold ds; rewrite <- data_known. intros P.
  destruct (known_paths t x I) as (p & Ip & Ep). destruct (known_paths t x' I') as (p' & Ip' & Ep').
  assert (Ec : computed p = shift t) by (unfold computed; now rewrite Ep).
  assert (L1 := denominator_at_least_1 t l o Hr Hs (top_exists t p Hs Ip Ec)).
  destruct (lg_ok l Fl L1) as [Fg Hg].
  apply (lse_stated t l o _ top E) with (y := lg l); try assumption.
  - now exists p.
  - exists p'; split; [exact Ip'|]. unfold pkey; now rewrite Ep'.
  - exact (paths_known t _ HL).
  - exact (paths_known t _ HE).
  - now apply fl_add.
Qed.

Theorem rung_02_lse M top E x xs : let ks := x :: xs in
  fmt M -> Forall (good M) ks -> (exists y, In y ks /\ shat y = M) -> (exists y, In y ks /\ logit (ikey y) = top) ->
  logits_ok ks -> E_ok top E ks ->
  let ds := map (fun y => Datum (ikey y) (serr y) 1) ks in let n := length ks in
  0 < readme_den ds top E (n - 1) 0 0 0 ->
  Rabs (fl (M + lg (fst (attend fl ex M ks))) - lse (map ikey ks)) <= readme_lse_bound ds top E (n - 1) 0 0 0.
Proof.
  intros ks HM G Top Tl HL HE ds n P.
  destruct (attend_run fl ex fl_op fl_add fl_sub ex_ok M x xs HM G) as (Hr & Hs & Es & F1 & _).
  assert (K := comb_known fl ex M xs (leaf fl ex M x)).
  destruct (comb_counts fl ex M xs (leaf fl ex M x)) as (C1 & C2 & C3 & C4 & C5).
  set (t := comb fl ex M (leaf fl ex M x) xs) in *. change (known (leaf fl ex M x)) with [(x, 1%nat)] in K.
  change ([(x, 1%nat)] ++ _) with (map (fun y => (y, 1%nat)) ks) in K.
  assert (F : map fst (known t) = ks) by (rewrite K, map_map; apply map_id).
  assert (D : map datum_of (known t) = ds) by (rewrite K, map_map; reflexivity).
  cbn [leaf adds rescales norms rescaled stored] in C1, C2, C3, C4, C5.
  assert (N : adds t = (n - 1)%nat) by (rewrite C1; unfold n; simpl; lia).
  assert (T := tree_lse t _ _ top E Hr Hs F1). cbv zeta in T. rewrite F, D, N, C2, C3, C4, Es in T.
  replace (map ikey ks) with (map dkey ds) by (unfold ds; rewrite map_map; reflexivity). now apply T.
Qed.

Theorem rung_03_lse top E x xs : let ks := x :: xs in
  Forall (fun y => fmt (shat y)) ks -> (exists y, In y ks /\ logit (ikey y) = top) -> logits_ok ks -> E_ok top E ks ->
  let ds := map datum_of ((x, S (raises (shat x) xs)) :: online_known (shat x) xs) in
  let a := (length ks - 1)%nat in let r := raises (shat x) xs in
  0 < readme_den ds top E a 0 r (INR r) ->
  let st := online fl ex x xs in
  Rabs (fl (fst st + lg (fst (snd st))) - lse (map ikey ks)) <= readme_lse_bound ds top E a 0 r (INR r).
Proof.
  intros ks G Tl HL HE ds a r P st. apply Forall_cons_iff in G. destruct G as [Gx Gs].
  assert (G : good (shat x) x) by (split; [exact Gx|lra]).
  assert (S0 : state_ok (leaf fl ex (shat x) x) (shat x, add_key fl ex (shat x) (0, 0) x)).
  { rewrite (first_key fl ex fl_op fl_sub ex_ok) by assumption. unfold state_ok; cbn [fst snd shift leaf].
    split; [now apply leaf_run|]. split; [now apply leaf_shifts|]. split; [reflexivity|]. split; [exact Gx|].
    split; [now apply weight_fmt|apply (fmt_fl fl fl_op)]. }
  assert (H := online_ok fl ex fl_op fl_add fl_sub ex_ok xs _ _ S0 Gs). fold (online fl ex x xs) in H.
  destruct H as (Hr & Hs & Es & Fs & F1 & _).
  assert (K := online_tree_known fl ex xs (leaf fl ex (shat x) x)).
  destruct (online_counts fl ex xs (leaf fl ex (shat x) x) eq_refl eq_refl) as (C1 & C2 & C3 & C4 & C5).
  assert (T0 := online_shift_in fl ex xs (leaf fl ex (shat x) x) (or_introl eq_refl)).
  set (t := online_tree fl ex (leaf fl ex (shat x) x) xs) in *.
  cbn [leaf adds rescales norms rescaled stored shift] in C1, C2, C3, C4, C5, K.
  change (known (Leaf x _ _)) with [(x, 1%nat)] in K. cbn [map fst snd Nat.add app] in K.
  assert (F : map fst (known t) = ks) by (rewrite K; exact (f_equal (cons x) (online_known_fst (shat x) xs))).
  assert (D : map datum_of (known t) = ds) by (rewrite K; reflexivity).
  assert (N : adds t = a) by (rewrite C1; unfold a; simpl; lia).
  assert (R : rescales t = r) by (rewrite C2; unfold r; lia).
  assert (X : rescaled t = INR r) by (rewrite C4; unfold r; ring).
  assert (Q : map dkey ds = map ikey ks) by (rewrite <- F, <- D, !map_map; reflexivity).
  assert (T := tree_lse t _ _ top E Hr Hs F1 Fs). cbv zeta in T. rewrite F, D, N, R, C3, X, Q in T.
  fold st in Es. rewrite Es in T. apply T; try assumption.
  rewrite Es in T0. change (In (fst st) (map shat ks)) in T0. apply in_map_iff in T0. destruct T0 as (y & Ey & Iy).
  now exists y.
Qed.

Theorem rung_04_lse top E p ps : let tiles := p :: ps in let ks := all_keys tiles in
  Forall tile_ok tiles -> (exists y, In y ks /\ logit (ikey y) = top) -> logits_ok ks -> E_ok top E ks ->
  let r := tile_raises (pm p) ps in
  let ds := map datum_of (map (fun x => (x, S r)) (pkeys p) ++ tiled_known (pm p) ps) in let a := (length ks - 1)%nat in
  0 < readme_den ds top E a 0 r (INR r) ->
  let st := tiled fl ex p ps in
  Rabs (fl (fst st + lg (fst (snd st))) - lse (map ikey ks)) <= readme_lse_bound ds top E a 0 r (INR r).
Proof.
  intros tiles ks G Tl HL HE r ds a P st.
  destruct (tiled_is_tree fl ex fl_op fl_add fl_sub ex_ok p ps G)
    as (t & Hr & Hs & Es & Fs & F1 & K & N & R & C3 & X & _ & T0).
  fold ks in N, T0. fold r in R, X, K.
  assert (F : map fst (known t) = ks) by (rewrite K; apply tiled_keys).
  assert (D : map datum_of (known t) = ds) by (rewrite K; reflexivity).
  assert (Q : map dkey ds = map ikey ks) by (rewrite <- F, <- D, !map_map; reflexivity).
  assert (T := tree_lse t _ _ top E Hr Hs F1 Fs). cbv zeta in T. rewrite F, D, N, R, C3, X, Q in T.
  fold st in Es. rewrite Es in T, T0. now apply T.
Qed.

Theorem rung_05_lse M top E C p ps : let parts := p :: ps in let ks := all_keys parts in let K := length parts in
  fmt M -> Forall (part_ok M) parts -> (exists y, In y ks /\ shat y = M) ->
  (exists y, In y ks /\ logit (ikey y) = top) ->
  Forall (fun c => length (pkeys c) <= C)%nat parts -> logits_ok ks -> E_ok top E ks ->
  let ds := map (fun x => Datum (ikey x) (serr x) 2) ks in
  0 < readme_den ds top E (C + K - 2) 1 1 (INR K) ->
  Rabs (fl (M + lg (fst (combine fl ex M parts))) - lse (map ikey ks))
    <= readme_lse_bound ds top E (C + K - 2) 1 1 (INR K).
Proof.
  intros parts ks K HM G Top Tl HC HL HE ds P.
  apply Forall_cons_iff in G as G'. destruct G' as [Gp Gps].
  apply Forall_cons_iff in HC as HC'. destruct HC' as [Cp Cps].
  destruct (node_ok fl ex fl_op fl_add fl_sub ex_ok M p HM Gp) as (Nr & Ns & Ne & Nf).
  set (lo := combine fl ex M parts).
  assert (Elo : lo = fold_left (add_part fl ex M) ps
    (part_weight fl ex M p, fl (part_weight fl ex M p * part_o fl ex p)))
    by (unfold lo, combine, parts; cbn [fold_left]; now rewrite (first_part fl ex fl_op M p HM Gp)).
  destruct (nodes_run fl ex fl_op fl_add fl_sub ex_ok M ps HM Gps (node fl ex M p) _ _ Nr Ns Ne Nf (fmt_fl fl fl_op _))
    as (Hr & Hs & Es). rewrite <- Elo in Hr.
  assert (F1 : fmt (fst lo)).
  { rewrite Elo. clear - fl_op Nf. generalize (fl (part_weight fl ex M p * part_o fl ex p)).
    revert Nf. generalize (part_weight fl ex M p). induction ps as [|q qs IH]; intros l0 F o0; [exact F|].
    cbn [fold_left]. apply IH. apply (fmt_fl fl fl_op). }
  destruct (node_counts fl ex M p) as (A1 & A2 & A3 & A4 & A5). unfold pkeys in Cp; cbn [length] in Cp.
  destruct (nodes_counts fl ex M C ps Cps (node fl ex M p) ltac:(lia) A2 A3) as (C1 & C2 & C3 & C4 & C5).
  assert (Kn := nodes_known fl ex M ps (node fl ex M p)). rewrite node_known, <- map_app in Kn.
  change (pkeys p ++ all_keys ps) with ks in Kn. set (t := nodes fl ex M (node fl ex M p) ps) in *.
  assert (F : map fst (known t) = ks) by (rewrite Kn, map_map; apply map_id).
  assert (D : map datum_of (known t) = ds) by (rewrite Kn, map_map; reflexivity).
  assert (Q : map dkey ds = map ikey ks) by (unfold ds; rewrite map_map; reflexivity).
  assert (Kl : INR K = 1 + INR (length ps)) by (unfold K, parts; cbn [length]; rewrite S_INR; ring).
  rewrite A4 in C4. rewrite <- Kl in C4.
  assert (HaK : (adds t <= C + K - 2)%nat) by (unfold K, parts; cbn [length]; lia).
  assert (Dg : Forall2 le_datum ds ds).
  { clear. unfold ds. generalize ks as l. induction l; cbn; constructor; [|assumption].
    unfold le_datum; cbn. repeat split; try lia; lra. }
  assert (Dne : ds <> []) by (unfold ds, ks, all_keys, parts; cbn; discriminate).
  assert (X0 : 0 <= INR K <= INR K) by (split; [apply pos_INR|lra]).
  assert (Dn := den_shrinks ds ds top E E (adds t) (C + K - 2) 1 1 1 1 (INR K) (INR K) 0 0
    Dg Dne ltac:(lra) HaK ltac:(lia) ltac:(lia) X0 ltac:(lra)).
  assert (T := tree_lse t _ _ top E Hr Hs F1). cbv zeta in T. rewrite F, D, C2, C3, C4, Q, Es in T.
  eapply Rle_trans; [apply T; try assumption; lra|].
  apply (lse_bound_grows ds ds top E E (adds t) (C + K - 2) 1 1 1 1 (INR K) (INR K) 0 0); try assumption; try lia; lra.
Qed.

Theorem rung_06_lse M top E C p ps mem order : let parts := p :: ps in let ks := all_keys parts in
  let K := length parts in Permutation order (seq 0 K) ->
  fmt M -> Forall (part_ok M) parts -> (exists y, In y ks /\ shat y = M) ->
  (exists y, In y ks /\ logit (ikey y) = top) ->
  Forall (fun c => length (pkeys c) <= C)%nat parts -> logits_ok ks -> E_ok top E ks ->
  let ds := map (fun x => Datum (ikey x) (serr x) 2) ks in
  0 < readme_den ds top E (C + K - 2) 1 1 (INR K) ->
  Rabs (fl (M + lg (fst (threads fl ex M parts mem order))) - lse (map ikey ks))
    <= readme_lse_bound ds top E (C + K - 2) 1 1 (INR K).
Proof. intros parts ks K Pm. intros. unfold parts. rewrite rung_06_is_05 by exact Pm. now apply rung_05_lse. Qed.
End LseRungs.
