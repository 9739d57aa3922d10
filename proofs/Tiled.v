(* Rung 04, tiled online softmax: the maximum of a whole tile first, then at most one rescale, then the tile's keys one
   by one. Its tree is that of rung 03, with one rescale for a tile that raises the maximum. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound Counts PassLine Programs Online Split.
Import ListNotations.
Open Scope R_scope.

(* A tile is a [part] of Split.v: its maximum pm and its keys. How often the tiles ps raise the maximum m; and, for each
   of their keys, its own exponential plus the later tiles that raise it. *)
Fixpoint tile_raises m ps := match ps with
  | [] => 0%nat
  | p :: ps => if Rlt_dec m (pm p) then S (tile_raises (pm p) ps) else tile_raises m ps
  end.
Fixpoint tiled_known m ps := match ps with
  | [] => []
  | p :: ps => let m' := if Rlt_dec m (pm p) then pm p else m in
      map (fun x => (x, S (tile_raises m' ps))) (pkeys p) ++ tiled_known m' ps
  end.

Lemma tiled_known_fst ps : forall m, map fst (tiled_known m ps) = all_keys ps.
Proof.
  induction ps as [|p ps IH]; intros m; [reflexivity|]. cbn [tiled_known].
  rewrite map_app, map_map, map_id, IH. reflexivity.
Qed.

Section Tiled.
Context {A : arithmetic} {B : functions}.
Variables fl ex : R -> R.
Hypothesis fl_op : forall x, rounds eta x (fl x).
Hypothesis fl_add : forall a b, fmt a -> fmt b -> rounds 0 (a + b) (fl (a + b)).
Hypothesis fl_sub : forall a b, fmt a -> fmt b -> rounds 0 (a - b) (fl (a - b)).
Hypothesis ex_ok : forall x, fmt x -> x <= 0 -> exps x (ex x).

(* The loop body of rung 04. The first tile is the state (its maximum, the sums of its keys), once -infinity is gone. *)
Definition tile (st : R * (R * R)) p := let (m, lo) := st in
  if Rlt_dec m (pm p)
  then let a := ex (fl (m - pm p)) in
    (pm p, fold_left (add_key fl ex (pm p)) (pkeys p) (fl (a * fst lo), fl (a * snd lo)))
  else (m, fold_left (add_key fl ex m) (pkeys p) lo).
Definition tiled p ps := fold_left tile ps (pm p, attend fl ex (pm p) (pkeys p)).

Definition tile_ok p := fmt (pm p) /\ Forall (good (pm p)) (pkeys p) /\ exists y, In y (pkeys p) /\ shat y = pm p.

Definition tile_step t p :=
  if Rlt_dec (shift t) (pm p)
  then comb fl ex (pm p) (Rescale (pm p) (ex (fl (shift t - pm p))) t) (pkeys p)
  else comb fl ex (shift t) t (pkeys p).
Definition tiled_tree t ps := fold_left tile_step ps t.

Lemma comb_shift M xs t : shift (comb fl ex M t xs) = shift t.
Proof. revert t; induction xs as [|x xs IH]; intros t; [reflexivity|]. exact (IH (Add t (leaf fl ex M x))). Qed.

Lemma comb_ok M t l o xs : state_ok t (M, (l, o)) -> Forall (good M) xs ->
  state_ok (comb fl ex M t xs) (M, fold_left (add_key fl ex M) xs (l, o)).
Proof.
  intros (Hr & Hs & E & Hm & Hl & Ho) G. cbn [fst snd] in *. rewrite E in Hm.
  destruct (comb_run fl ex fl_op fl_add fl_sub ex_ok M xs Hm G t l o Hr Hl Ho) as (R1 & R2 & R3).
  destruct (comb_shifts fl ex fl_op fl_sub ex_ok M xs t Hm G Hs E) as [S1 S2].
  unfold state_ok; cbn [fst snd]. rewrite S2. repeat split; assumption.
Qed.

Lemma tile_step_ok t st p : state_ok t st -> tile_ok p -> state_ok (tile_step t p) (tile st p).
Proof.
  destruct st as [m [l o]]. intros H (F & G & _). assert (K := H). destruct K as (Hr & Hs & E & Hm & Hl & Ho).
  cbn [fst snd] in *. subst m. unfold tile_step, tile; cbn [fst snd]. destruct (Rlt_dec (shift t) (pm p)) as [L|L].
  - apply comb_ok; [|exact G]. unfold state_ok; cbn [fst snd shift].
    split; [apply (run_rescale (pm p) _ t l o); [exact Hr|apply fl_op|apply fl_op]|].
    split; [|split; [reflexivity|split; [exact F|split; apply (fmt_fl fl fl_op)]]].
    split; [exact Hs|]. split; [lra|]. apply (exp_of_fl fl ex fl_op fl_sub ex_ok); [exact Hm|exact F|lra].
  - apply comb_ok; [exact H|]. revert G. apply Forall_impl. intros x [Fx Lx]. split; [exact Fx|lra].
Qed.

Lemma tiled_ok ps : forall t st, state_ok t st -> Forall tile_ok ps ->
  state_ok (tiled_tree t ps) (fold_left tile ps st).
Proof.
  induction ps as [|p ps IH]; intros t st H F; [exact H|].
  apply Forall_cons_iff in F. destruct F as [F Fs]. apply IH; [now apply tile_step_ok|exact Fs].
Qed.

Lemma tile_shift t p : shift (tile_step t p) = if Rlt_dec (shift t) (pm p) then pm p else shift t.
Proof. unfold tile_step. destruct (Rlt_dec (shift t) (pm p)); now rewrite comb_shift. Qed.

Lemma tiled_tree_known ps : forall t, known (tiled_tree t ps) =
  map (fun xr => (fst xr, (snd xr + tile_raises (shift t) ps)%nat)) (known t) ++ tiled_known (shift t) ps.
Proof.
  induction ps as [|p ps IH]; intros t.
  - cbn [tiled_tree fold_left tile_raises tiled_known]. rewrite app_nil_r. symmetry.
    transitivity (map (fun xr => xr) (known t)); [|apply map_id].
    apply map_ext; intros [y r]; cbn. now rewrite Nat.add_0_r.
  - change (tiled_tree t (p :: ps)) with (tiled_tree (tile_step t p) ps).
    rewrite IH, tile_shift. unfold tile_step; cbn [tile_raises tiled_known].
    destruct (Rlt_dec (shift t) (pm p)) as [L|L];
      rewrite comb_known, ?known_rescale, !map_app, <- app_assoc, ?map_map; f_equal.
    apply map_ext; intros [y r]; cbn. f_equal; lia.
Qed.

Lemma tiled_counts ps : forall t, norms t = 0%nat -> stored t = 0 ->
  adds (tiled_tree t ps) = (length (all_keys ps) + adds t)%nat
  /\ rescales (tiled_tree t ps) = (tile_raises (shift t) ps + rescales t)%nat
  /\ norms (tiled_tree t ps) = 0%nat /\ rescaled (tiled_tree t ps) = INR (tile_raises (shift t) ps) + rescaled t
  /\ stored (tiled_tree t ps) = 0.
Proof.
  induction ps as [|p ps IH]; intros t Hn Hst.
  - cbn; repeat split; try assumption; try lra.
  - change (tiled_tree t (p :: ps)) with (tiled_tree (tile_step t p) ps).
    destruct (comb_counts fl ex (pm p) (pkeys p) (Rescale (pm p) (ex (fl (shift t - pm p))) t))
      as (A1 & A2 & A3 & A4 & A5).
    destruct (comb_counts fl ex (shift t) (pkeys p) t) as (B1 & B2 & B3 & B4 & B5).
    cbn [adds rescales norms rescaled stored] in A1, A2, A3, A4, A5.
    destruct (IH (tile_step t p)) as (-> & -> & -> & -> & ->).
    + unfold tile_step; destruct (Rlt_dec _ _); congruence.
    + unfold tile_step; destruct (Rlt_dec _ _); congruence.
    + rewrite tile_shift. unfold all_keys; cbn [map concat tile_raises]. rewrite app_length. fold (all_keys ps).
      unfold tile_step. destruct (Rlt_dec (shift t) (pm p)) as [L|L];
        rewrite ?A1, ?A2, ?A4, ?B1, ?B2, ?B4, ?S_INR; repeat split; try lia; lra.
Qed.

Lemma tiled_shift_in ps : Forall tile_ok ps -> forall t, In (shift t) (map shat (map fst (known t))) ->
  In (shift (tiled_tree t ps)) (map shat (map fst (known t)) ++ map shat (all_keys ps)).
Proof.
  induction ps as [|p ps IH]; intros F t I; [cbn; now rewrite app_nil_r|].
  apply Forall_cons_iff in F. destruct F as [(_ & _ & y & Iy & Ey) Fs].
  change (tiled_tree t (p :: ps)) with (tiled_tree (tile_step t p) ps).
  assert (K : map fst (known (tile_step t p)) = map fst (known t) ++ pkeys p).
  { unfold tile_step; destruct (Rlt_dec _ _);
    rewrite comb_known, ?known_rescale, !map_app, !map_map, map_id; reflexivity. }
  assert (J : In (shift (tile_step t p)) (map shat (map fst (known (tile_step t p))))).
  { rewrite K, map_app, tile_shift. apply in_app_iff. destruct (Rlt_dec _ _); [right|now left].
    rewrite <- Ey. now apply in_map. }
  specialize (IH Fs (tile_step t p) J). rewrite K, map_app, <- app_assoc, <- map_app in IH. exact IH.
Qed.

(* What rung 04 is, for both of its results. *)
Lemma tiled_is_tree p ps : let tiles := p :: ps in let ks := all_keys tiles in
  Forall tile_ok tiles -> let r := tile_raises (pm p) ps in let st := tiled p ps in exists t,
  run t (fst (snd st)) (snd (snd st)) /\ shifts_ok t /\ shift t = fst st /\ fmt (shift t) /\ fmt (fst (snd st)) /\
  known t = map (fun x => (x, S r)) (pkeys p) ++ tiled_known (pm p) ps /\
  adds t = (length ks - 1)%nat /\ rescales t = r /\ norms t = 0%nat /\ rescaled t = INR r /\ stored t = 0 /\
  exists x, In x ks /\ shat x = shift t.
Proof.
  intros tiles ks G r st. apply Forall_cons_iff in G. destruct G as [Gp Gs]. assert (Gp' := Gp).
  destruct Gp' as (F & Gk & y & Iy & Ey).
  destruct (attend_run fl ex fl_op fl_add fl_sub ex_ok (pm p) (pfirst p) (prest p) F Gk) as (R0 & S0 & E0 & F1 & F2).
  set (t0 := comb fl ex (pm p) (leaf fl ex (pm p) (pfirst p)) (prest p)) in *.
  assert (St0 : state_ok t0 (pm p, attend fl ex (pm p) (pkeys p)))
    by (unfold state_ok; cbn [fst snd]; rewrite E0; repeat split; assumption).
  assert (H := tiled_ok ps _ _ St0 Gs). change (fold_left tile ps _) with st in H.
  assert (K0 : known t0 = map (fun x => (x, 1%nat)) (pkeys p)) by (unfold t0; now rewrite comb_known).
  destruct (comb_counts fl ex (pm p) (prest p) (leaf fl ex (pm p) (pfirst p))) as (D1 & D2 & D3 & D4 & D5).
  fold t0 in D1, D2, D3, D4, D5. cbn [leaf adds rescales norms rescaled stored] in D1, D2, D3, D4, D5.
  assert (K := tiled_tree_known ps t0). destruct (tiled_counts ps t0 D3 D5) as (C1 & C2 & C3 & C4 & C5).
  assert (I0 : In (shift t0) (map shat (map fst (known t0)))).
  { rewrite E0, K0, (map_map _ fst), map_id, <- Ey. now apply in_map. }
  assert (T0 := tiled_shift_in ps Gs t0 I0). set (t := tiled_tree t0 ps) in *.
  rewrite E0, K0, map_map in K. cbn [fst snd Nat.add] in K. rewrite E0 in C2, C4.
  rewrite K0, (map_map _ fst), map_id, <- map_app in T0. change (pkeys p ++ all_keys ps) with ks in T0.
  assert (N : adds t = (length ks - 1)%nat).
  { rewrite C1, D1. replace ks with (pkeys p ++ all_keys ps) by reflexivity. rewrite app_length.
    assert (Lp : length (pkeys p) = S (length (prest p))) by reflexivity. lia. }
  destruct H as (H1 & H2 & H3 & H4 & H5 & _). exists t. repeat split; try assumption.
  - rewrite C2, D2. unfold r. lia.
  - rewrite C4, D4. unfold r. ring.
  - apply in_map_iff in T0. destruct T0 as (z & Ez & Iz). now exists z.
Qed.

Lemma tiled_keys p ps r :
  map fst (map (fun x => (x, S r)) (pkeys p) ++ tiled_known (pm p) ps) = all_keys (p :: ps).
Proof. rewrite map_app, map_map, map_id. exact (f_equal (app (pkeys p)) (tiled_known_fst ps (pm p))). Qed.

(* Theorem: rung 04. n - 1 additions; key j meets its own exponential and r_j rescales, one for each later tile that
   raises the maximum: hN = n + r_j, hD = n - 1 + r_j. *)
Theorem rung_04 top E p ps : let tiles := p :: ps in let ks := all_keys tiles in
  Forall tile_ok tiles -> logits_ok ks -> E_ok top E ks ->
  let r := tile_raises (pm p) ps in
  let ds := map datum_of (map (fun x => (x, S r)) (pkeys p) ++ tiled_known (pm p) ps) in let a := (length ks - 1)%nat in
  0 < readme_den ds top E a 0 r (INR r) ->
  let lo := snd (tiled p ps) in
  Rabs (fl (snd lo / fst lo) - attention (map ikey ks)) <= readme_bound ds top E a 0 r (INR r) 0.
Proof.
  intros tiles ks G HL HE r ds a P lo.
  destruct (tiled_is_tree p ps G) as (t & Hr & Hs & Es & _ & _ & K & N & R & C3 & X & C5 & T0).
  fold ks in N, T0. fold r in R, X, K. fold a in N.
  assert (Fk : map fst (known t) = ks) by (rewrite K; apply tiled_keys).
  assert (D : map datum_of (known t) = ds) by (rewrite K; reflexivity).
  assert (T := tree_pass_line fl fl_op t _ _ top E Hr Hs). cbv zeta in T. rewrite Fk, D, N, R, C3, X, C5 in T.
  assert (Q : map dkey ds = map ikey ks) by (rewrite <- Fk, <- D, !map_map; reflexivity).
  rewrite <- Q. now apply T.
Qed.
End Tiled.
