(* Rung 03, online softmax: the streaming program, the tree that it is, and its count of rescales. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound Counts PassLine Programs.
Import ListNotations.
Open Scope R_scope.

(* How often the keys xs raise the maximum m; and, for each of them, its own exponential plus the later raises. *)
Fixpoint raises m xs := match xs with
  | [] => 0%nat
  | x :: xs => if Rlt_dec m (shat x) then S (raises (shat x) xs) else raises m xs
  end.
Fixpoint online_known m xs := match xs with
  | [] => []
  | x :: xs => let m' := if Rlt_dec m (shat x) then shat x else m in (x, S (raises m' xs)) :: online_known m' xs
  end.

Lemma online_known_fst m xs : map fst (online_known m xs) = xs.
Proof. revert m; induction xs as [|x xs IH]; intros m; cbn; [reflexivity|]. now rewrite IH. Qed.

Section Online.
Context {A : arithmetic} {B : functions}.
Variables fl ex : R -> R.
Hypothesis fl_op : forall x, rounds eta x (fl x).
Hypothesis fl_add : forall a b, fmt a -> fmt b -> rounds 0 (a + b) (fl (a + b)).
Hypothesis fl_sub : forall a b, fmt a -> fmt b -> rounds 0 (a - b) (fl (a - b)).
Hypothesis ex_ok : forall x, fmt x -> x <= 0 -> exps x (ex x).

(* The loop body of rung 03. The first key is the state (its logit, 1, its value), once -infinity is gone. *)
Definition online_key (st : R * (R * R)) x := let (m, lo) := st in
  if Rlt_dec m (shat x)
  then let a := ex (fl (m - shat x)) in (shat x, add_key fl ex (shat x) (fl (a * fst lo), fl (a * snd lo)) x)
  else (m, add_key fl ex m lo x).
Definition online x xs := fold_left online_key xs (shat x, add_key fl ex (shat x) (0, 0) x).

Definition online_step t x :=
  if Rlt_dec (shift t) (shat x)
  then Add (Rescale (shat x) (ex (fl (shift t - shat x))) t) (leaf fl ex (shat x) x)
  else Add t (leaf fl ex (shift t) x).
Definition online_tree t xs := fold_left online_step xs t.

Definition state_ok t (st : R * (R * R)) := run t (fst (snd st)) (snd (snd st)) /\ shifts_ok t /\ shift t = fst st /\
  fmt (shift t) /\ fmt (fst (snd st)) /\ fmt (snd (snd st)).

Lemma leaf_run M x : run (leaf fl ex M x) (weight fl ex M x) (fl (weight fl ex M x * value (ikey x))).
Proof. apply run_leaf, fl_op. Qed.

Lemma add_leaf_ok t M l o x : run t l o -> shifts_ok t -> shift t = M -> fmt M -> fmt l -> fmt o -> good M x ->
  state_ok (Add t (leaf fl ex M x)) (M, add_key fl ex M (l, o) x).
Proof.
  intros Hr Hs E HM Hl Ho G. unfold state_ok, add_key; cbn [fst snd shift].
  assert (W := weight_fmt fl ex fl_op fl_sub ex_ok M x HM G).
  split; [|split; [|split; [exact E|split; [now rewrite E|split; apply (fmt_fl fl fl_op)]]]].
  - eapply run_add; [exact Hr|apply leaf_run|now apply fl_add|].
    apply (fl_oadd fl fl_add); [exact Ho|apply (fmt_fl fl fl_op)].
  - split; [exact Hs|]. split; [now apply leaf_shifts|exact E].
Qed.

Lemma online_step_ok t st x : state_ok t st -> fmt (shat x) -> state_ok (online_step t x) (online_key st x).
Proof.
  destruct st as [m [l o]]. intros (Hr & Hs & E & Hm & Hl & Ho) Hx. cbn [fst snd] in *. subst m.
  unfold online_step, online_key; cbn [fst snd]. destruct (Rlt_dec (shift t) (shat x)) as [L|L].
  - apply add_leaf_ok; try apply (fmt_fl fl fl_op); try assumption; try reflexivity; [| |split; [exact Hx|lra]].
    + apply (run_rescale (shat x) _ t l o); [exact Hr|apply fl_op|apply fl_op].
    + split; [exact Hs|]. split; [lra|]. apply (exp_of_fl fl ex fl_op fl_sub ex_ok); [exact Hm|exact Hx|lra].
  - apply add_leaf_ok; try assumption; [reflexivity|]. split; [exact Hx|lra].
Qed.

Lemma online_ok xs : forall t st, state_ok t st -> Forall (fun x => fmt (shat x)) xs ->
  state_ok (online_tree t xs) (fold_left online_key xs st).
Proof.
  induction xs as [|x xs IH]; intros t st H F; [exact H|].
  apply Forall_cons_iff in F. destruct F as [F Fs]. apply IH; [now apply online_step_ok|exact Fs].
Qed.

Lemma online_shift t x : shift (online_step t x) = if Rlt_dec (shift t) (shat x) then shat x else shift t.
Proof. unfold online_step. destruct (Rlt_dec (shift t) (shat x)); reflexivity. Qed.

Lemma online_tree_known xs : forall t, known (online_tree t xs) =
  map (fun xr => (fst xr, (snd xr + raises (shift t) xs)%nat)) (known t) ++ online_known (shift t) xs.
Proof.
  induction xs as [|x xs IH]; intros t.
  - cbn [online_tree fold_left raises online_known]. rewrite app_nil_r. symmetry.
    transitivity (map (fun xr => xr) (known t)); [|apply map_id].
    apply map_ext; intros [y r]; cbn. now rewrite Nat.add_0_r.
  - change (online_tree t (x :: xs)) with (online_tree (online_step t x) xs).
    rewrite IH, online_shift. unfold online_step; cbn [raises online_known].
    destruct (Rlt_dec (shift t) (shat x)) as [L|L]; rewrite known_add, ?known_rescale, map_app, <- app_assoc, ?map_map.
    + f_equal. apply map_ext; intros [y r]; cbn. f_equal; lia.
    + reflexivity.
Qed.

Lemma online_counts xs : forall t, norms t = 0%nat -> stored t = 0 ->
  adds (online_tree t xs) = (length xs + adds t)%nat
  /\ rescales (online_tree t xs) = (raises (shift t) xs + rescales t)%nat
  /\ norms (online_tree t xs) = 0%nat /\ rescaled (online_tree t xs) = INR (raises (shift t) xs) + rescaled t
  /\ stored (online_tree t xs) = 0.
Proof.
  induction xs as [|x xs IH]; intros t Hn Hst.
  - cbn; repeat split; try assumption; try lra.
  - change (online_tree t (x :: xs)) with (online_tree (online_step t x) xs).
    destruct (IH (online_step t x)) as (-> & -> & -> & -> & ->).
    + unfold online_step; destruct (Rlt_dec _ _); cbn [norms leaf]; now rewrite Hn.
    + unfold online_step; destruct (Rlt_dec _ _); cbn [stored leaf]; rewrite Hst; ring.
    + rewrite online_shift. unfold online_step; cbn [raises length]. destruct (Rlt_dec (shift t) (shat x)) as [L|L];
        cbn [adds rescales rescaled leaf]; rewrite ?S_INR, ?Nat.max_0_r; repeat split; try lia; lra.
Qed.

(* The last shift is the largest computed logit. *)
Lemma online_shift_in xs : forall t, In (shift t) (map shat (map fst (known t))) ->
  In (shift (online_tree t xs)) (map shat (map fst (known t)) ++ map shat xs).
Proof.
  induction xs as [|x xs IH]; intros t I; [now rewrite app_nil_r|].
  change (online_tree t (x :: xs)) with (online_tree (online_step t x) xs).
  assert (K : map fst (known (online_step t x)) = map fst (known t) ++ [x]).
  { unfold online_step; destruct (Rlt_dec _ _); rewrite known_add, ?known_rescale, map_app, ?map_map; reflexivity. }
  assert (J : In (shift (online_step t x)) (map shat (map fst (known (online_step t x))))).
  { rewrite K, map_app, online_shift. apply in_app_iff. destruct (Rlt_dec _ _); [right; now left|now left]. }
  specialize (IH (online_step t x) J). rewrite K, map_app, <- app_assoc in IH. exact IH.
Qed.

(* Theorem: rung 03. n - 1 additions; key j meets its own exponential and r_j rescales, one for each later key that
   raises the maximum: hN = n + r_j, hD = n - 1 + r_j. A key that does not raise it rounds nothing. *)
Theorem rung_03 top E x xs : let ks := x :: xs in
  Forall (fun y => fmt (shat y)) ks -> logits_ok ks -> E_ok top E ks ->
  let ds := map datum_of ((x, S (raises (shat x) xs)) :: online_known (shat x) xs) in
  let a := (length ks - 1)%nat in let r := raises (shat x) xs in
  0 < readme_den ds top E a 0 r (INR r) ->
  let lo := snd (online x xs) in
  Rabs (fl (snd lo / fst lo) - attention (map ikey ks)) <= readme_bound ds top E a 0 r (INR r) 0.
Proof.
  intros ks G HL HE ds a r P lo. apply Forall_cons_iff in G. destruct G as [Gx Gs].
  assert (G : good (shat x) x) by (split; [exact Gx|lra]).
  assert (S0 : state_ok (leaf fl ex (shat x) x) (shat x, add_key fl ex (shat x) (0, 0) x)).
  { rewrite (first_key fl ex fl_op fl_sub ex_ok) by assumption. unfold state_ok; cbn [fst snd shift leaf].
    split; [apply leaf_run|]. split; [now apply leaf_shifts|]. split; [reflexivity|]. split; [exact Gx|].
    split; [now apply weight_fmt|apply (fmt_fl fl fl_op)]. }
  assert (H := online_ok xs _ _ S0 Gs). fold (online x xs) in H. destruct H as (Hr & Hs & Es & _).
  assert (K := online_tree_known xs (leaf fl ex (shat x) x)).
  destruct (online_counts xs (leaf fl ex (shat x) x) eq_refl eq_refl) as (C1 & C2 & C3 & C4 & C5).
  assert (T0 := online_shift_in xs (leaf fl ex (shat x) x) (or_introl eq_refl)).
  set (t := online_tree (leaf fl ex (shat x) x) xs) in *.
  cbn [leaf adds rescales norms rescaled stored shift] in C1, C2, C3, C4, C5, K.
  change (known (Leaf x _ _)) with [(x, 1%nat)] in K. cbn [map fst snd Nat.add app] in K.
  assert (F : map fst (known t) = ks) by (rewrite K; exact (f_equal (cons x) (online_known_fst (shat x) xs))).
  assert (D : map datum_of (known t) = ds) by (rewrite K; reflexivity).
  assert (N : adds t = a) by (rewrite C1; unfold a; simpl; lia).
  assert (R : rescales t = r) by (rewrite C2; unfold r; lia).
  assert (X : rescaled t = INR r) by (rewrite C4; unfold r; ring).
  assert (T := tree_pass_line fl fl_op t _ _ top E Hr Hs). cbv zeta in T. rewrite F, D, N, R, C3, X, C5 in T.
  assert (Q : map dkey ds = map ikey ks).
  { rewrite <- F, <- D, !map_map. reflexivity. }
  rewrite <- Q. apply T; try assumption.
  change (In (shift t) (map shat ks)) in T0. apply in_map_iff in T0. destruct T0 as (y & Ey & Iy). now exists y.
Qed.

End Online.
