(* Rung 05, split-KV: the pass line in closed form. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound Counts PassLine Grow Programs Split.
Import ListNotations.
Open Scope R_scope.

Section Rung05.
Context {A : arithmetic} {B : functions}.
Variables fl ex : R -> R.
Hypothesis fl_op : forall x, rounds eta x (fl x).
Hypothesis fl_add : forall a b, fmt a -> fmt b -> rounds 0 (a + b) (fl (a + b)).
Hypothesis fl_sub : forall a b, fmt a -> fmt b -> rounds 0 (a - b) (fl (a - b)).
Hypothesis ex_ok : forall x, fmt x -> x <= 0 -> exps x (ex x).

(* What a normalised partial over at most C keys with |v| <= vm can be. *)
Definition part_size C vm := (1 + u) * (vm * (1 + u) ^ C / (1 - u) ^ (C - 1)
  + (1 + u) ^ C * (eta * INR C + oadd * INR (C - 1))) + eta.

Lemma stored_bound M C vm p : fmt M -> part_ok M p -> (length (pkeys p) <= C)%nat ->
  (forall x, In x (pkeys p) -> Rabs (value (ikey x)) <= vm) ->
  0 <= stored (node fl ex M p) <= part_size C vm + (1 + u) ^ (C - 1) * INR (length (pkeys p)).
Proof.
  intros HM P HC Hv. assert (U := u_range). assert (Pe := eta_nonneg). assert (Po := oadd_nonneg).
  destruct (part_tree_ok fl ex fl_op fl_add fl_sub ex_ok M p P) as (Hr & Hs & Es & Ht).
  destruct (node_counts fl ex M p) as (_ & _ & _ & _ & ->).
  destruct (comb_counts fl ex (pm p) (prest p) (Programs.leaf fl ex (pm p) (pfirst p))) as (C1 & C2 & C3 & C4 & C5).
  assert (K := comb_known fl ex (pm p) (prest p) (Programs.leaf fl ex (pm p) (pfirst p))).
  fold (part_tree fl ex p) in *. cbn [Programs.leaf adds rescales norms rescaled stored] in C1, C2, C3, C4, C5.
  assert (F : map fst (known (part_tree fl ex p)) = pkeys p) by (rewrite K, map_app, map_map, map_id; reflexivity).
  assert (Hv' : forall x, In x (paths (part_tree fl ex p)) -> Rabs (value (pkey x)) <= vm).
  { apply (paths_known _ (fun x => Rabs (value (ikey x)) <= vm)). rewrite F. now apply Forall_forall. }
  destruct (sums_upper _ _ _ vm Hr Hs Ht C4 Hv') as [Lu Ou].
  assert (Len : keys_in (part_tree fl ex p) = INR (length (pkeys p))).
  { rewrite keys_in_length, <- F. unfold known. now rewrite !map_length. }
  assert (Ups : ups (part_tree fl ex p) = length (pkeys p)) by (unfold ups; rewrite C1, C2, C3; cbn; lia).
  assert (Downs : downs (part_tree fl ex p) = (length (pkeys p) - 1)%nat) by (unfold downs; rewrite C1, C2; cbn; lia).
  set (n := length (pkeys p)) in *. assert (N1 : (1 <= n)%nat) by (unfold n, pkeys; cbn; lia).
  rewrite Len, Downs in Lu. rewrite Ups, Downs in Ou. unfold EN_closed in Ou. rewrite Len, C4, C5, !Rplus_0_r in Ou.
  assert (Vm : 0 <= vm) by (eapply Rle_trans; [apply Rabs_pos|apply (Hv (pfirst p)); now left]).
  assert (Ni : INR n <= INR C) by now apply le_INR.
  assert (Nj : INR n - 1 = INR (n - 1)) by (rewrite minus_INR by exact N1; simpl; ring).
  assert (Nk : INR (n - 1) <= INR (C - 1)) by (apply le_INR; lia).
  assert (O1 : vm * (1 + u) ^ n / (1 - u) ^ (n - 1) <= vm * (1 + u) ^ C / (1 - u) ^ (C - 1)).
  { assert (D := down_range (n - 1)). assert (D' := down_range (C - 1)). assert (G := up_ge_1 n).
    apply Rmult_le_compat; [nra|left; apply Rinv_0_lt_compat; lra| |].
    2: { apply Rinv_le_contravar; [lra|apply down_mono; lia]. }
    apply Rmult_le_compat_l; [exact Vm|now apply up_mono]. }
  assert (O2 : (1 + u) ^ n * (eta * INR n + oadd * (INR n - 1)) <= (1 + u) ^ C * (eta * INR C + oadd * INR (C - 1))).
  { rewrite Nj. assert (G := up_ge_1 n). assert (I0 := pos_INR n). assert (I1 := pos_INR (n - 1)).
    assert (T1 := Rmult_le_compat_l _ _ _ Pe Ni). assert (T2 := Rmult_le_compat_l _ _ _ Po Nk).
    assert (T3 := Rmult_le_pos _ _ Pe I0). assert (T4 := Rmult_le_pos _ _ Po I1).
    apply Rmult_le_compat; [lra|lra|now apply up_mono|lra]. }
  assert (Oc : Rabs (part_o fl ex p) <= part_size C vm).
  { unfold part_o, part_size. set (q := _ / part_l fl ex p) in *. assert (X := error _ _ _ (fl_op q)).
    replace (fl q) with ((fl q - q) + q) by ring. eapply Rle_trans; [apply Rabs_triang|].
    assert (T : (1 + u) * Rabs q <= (1 + u) * (vm * (1 + u) ^ C / (1 - u) ^ (C - 1)
      + (1 + u) ^ C * (eta * INR C + oadd * INR (C - 1)))) by (apply Rmult_le_compat_l; lra). lra. }
  destruct P as (Fp & Lp & _). destruct (exp_of_fl fl ex fl_op fl_sub ex_ok (pm p) M Fp HM Lp) as [(t & T & X) _].
  assert (Ha := exp_of_negative _ _ X (not_above_0 _ _ _ T ltac:(lra))).
  assert (L1 := denominator_at_least_1 _ _ _ Hr Hs Ht).
  assert (Lc : part_l fl ex p <= (1 + u) ^ (C - 1) * INR n).
  { eapply Rle_trans; [exact Lu|]. apply Rmult_le_compat_r; [apply pos_INR|apply up_mono; lia]. }
  assert (Po' := Rabs_pos (part_o fl ex p)). split; [nra|]. apply Rplus_le_compat; [exact Oc|]. nra.
Qed.

Lemma first_part M p : fmt M -> part_ok M p -> add_part fl ex M (0, 0) p =
  (part_weight fl ex M p, fl (part_weight fl ex M p * part_o fl ex p)).
Proof.
  intros HM P. unfold add_part; cbn [fst snd]. unfold part_weight.
  rewrite !Rplus_0_l, !(fl_exact fl fl_op (fl _)) by apply (fmt_fl fl fl_op). reflexivity.
Qed.

(* Theorem: rung 05. n keys in K splits of at most C, none empty: C + K - 2 additions, two exponentials and one
   normalised level for every key: hN = C + K + 2, hD = C + K - 1. *)
Theorem rung_05 M top E C vm p ps : let parts := p :: ps in let ks := all_keys parts in let K := length parts in
  fmt M -> Forall (part_ok M) parts -> (exists y, In y ks /\ shat y = M) ->
  Forall (fun c => length (pkeys c) <= C)%nat parts -> Forall (fun x => Rabs (value (ikey x)) <= vm) ks ->
  logits_ok ks -> E_ok top E ks ->
  let ds := map (fun x => Datum (ikey x) (serr x) 2) ks in
  let St := INR K * part_size C vm + (1 + u) ^ (C - 1) * INR (length ks) in
  0 < readme_den ds top E (C + K - 2) 1 1 (INR K) ->
  let lo := combine fl ex M parts in
  Rabs (fl (snd lo / fst lo) - attention (map ikey ks)) <= readme_bound ds top E (C + K - 2) 1 1 (INR K) St.
Proof.
  intros parts ks K HM G Top HC Hv HL HE ds St P lo.
  apply Forall_cons_iff in G as G'. destruct G' as [Gp Gps].
  apply Forall_cons_iff in HC as HC'. destruct HC' as [Cp Cps].
  destruct (node_ok fl ex fl_op fl_add fl_sub ex_ok M p HM Gp) as (Nr & Ns & Ne & Nf).
  assert (Elo : lo = fold_left (add_part fl ex M) ps
    (part_weight fl ex M p, fl (part_weight fl ex M p * part_o fl ex p)))
    by (unfold lo, combine, parts; cbn [fold_left]; now rewrite first_part).
  destruct (nodes_run fl ex fl_op fl_add fl_sub ex_ok M ps HM Gps (node fl ex M p) _ _ Nr Ns Ne Nf (fmt_fl fl fl_op _))
    as (Hr & Hs & Es). rewrite <- Elo in Hr.
  destruct (node_counts fl ex M p) as (A1 & A2 & A3 & A4 & A5). unfold pkeys in Cp; cbn [length] in Cp.
  destruct (nodes_counts fl ex M C ps Cps (node fl ex M p) ltac:(lia) A2 A3) as (C1 & C2 & C3 & C4 & C5).
  assert (Kn := nodes_known fl ex M ps (node fl ex M p)). rewrite node_known, <- map_app in Kn.
  change (pkeys p ++ all_keys ps) with ks in Kn. set (t := nodes fl ex M (node fl ex M p) ps) in *.
  assert (F : map fst (known t) = ks) by (rewrite Kn, map_map; apply map_id).
  assert (D : map datum_of (known t) = ds) by (rewrite Kn, map_map; reflexivity).
  assert (Q : map dkey ds = map ikey ks) by (unfold ds; rewrite map_map; reflexivity).
  assert (Kl : INR K = 1 + INR (length ps)) by (unfold K, parts; cbn [length]; rewrite S_INR; ring).
  rewrite A4 in C4. rewrite <- Kl in C4.
  assert (HS : 0 <= stored t <= St).
  { assert (T : Forall (fun c => 0 <= stored (node fl ex M c)
      <= part_size C vm + (1 + u) ^ (C - 1) * INR (length (pkeys c))) parts).
    { apply Forall_forall; intros c I. apply (stored_bound M C vm c HM).
      - exact (proj1 (Forall_forall _ _) G c I).
      - exact (proj1 (Forall_forall _ _) HC c I).
      - intros x Ix. apply (proj1 (Forall_forall _ _) Hv). apply in_concat. exists (pkeys c); split; [|exact Ix].
        now apply in_map. }
    change (stored (node fl ex M p) + sum (fun c => stored (node fl ex M c)) ps)
      with (sum (fun c => stored (node fl ex M c)) parts) in C5.
    rewrite Forall_forall in T. rewrite C5. split; [apply sum_nonneg; intros c I; apply (T c I)|].
    apply Rle_trans with (sum (fun c => part_size C vm + (1 + u) ^ (C - 1) * INR (length (pkeys c))) parts).
    { apply sum_le; intros c I; apply (T c I). }
    rewrite sum_plus, sum_const, sum_scal. unfold St, K. right. f_equal. f_equal.
    unfold ks, all_keys. clear. induction parts as [|c cs IH]; [reflexivity|].
    cbn [map concat sum fold_right]. rewrite app_length, plus_INR. f_equal. exact IH. }
  assert (HaK : (adds t <= C + K - 2)%nat) by (unfold K, parts; cbn [length]; lia).
  assert (Dg : Forall2 le_datum ds ds).
  { clear. unfold ds. generalize ks as l. induction l; cbn; constructor; [|assumption].
    unfold le_datum; cbn. repeat split; try lia; lra. }
  assert (Dne : ds <> []) by (unfold ds, ks, all_keys, parts; cbn; discriminate).
  assert (X0 : 0 <= INR K <= INR K) by (split; [apply pos_INR|lra]).
  assert (Dn := den_shrinks ds ds top E E (adds t) (C + K - 2) 1 1 1 1 (INR K) (INR K) (stored t) St
    Dg Dne ltac:(lra) HaK ltac:(lia) ltac:(lia) X0 HS).
  assert (T := tree_pass_line fl fl_op t _ _ top E Hr Hs). cbv zeta in T. rewrite F, D, C2, C3, C4, Q in T.
  rewrite Es in T. eapply Rle_trans; [apply T; try assumption; lra|].
  apply bound_grows; try assumption; try lia; try lra.
  intros x I. apply in_map_iff in I. destruct I as (d & <- & I). unfold ds in I. apply in_map_iff in I.
  destruct I as (y & <- & I). cbn [Z de dkey dR].
  assert (Hl := proj1 (Forall_forall _ _) HL y I). assert (He := proj1 (Forall_forall _ _) HE y I). cbv beta in Hl, He.
  assert (Pa := Rabs_pos (shat y - logit (ikey y))). assert (U := u_range). assert (Pp := eps'_nonneg).
  assert (T1 : 0 <= u * (top - logit (ikey y) + serr y + E)) by (apply Rmult_le_pos; lra). simpl (INR 2). lra.
Qed.

End Rung05.
