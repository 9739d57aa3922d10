(* The arithmetic of rungs 02 and 03 as functions of their rounding fl and their exponential ex, and the trees that they
   are. Sums start from 0, as in C; the first addition is exact. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound Counts PassLine.
Import ListNotations.
Open Scope R_scope.

(* What the judge knows of each key of a tree, its path forgotten. *)
Definition known t := map (fun p => (pin p, met p)) (paths t).
Definition datum_of (xr : input * nat) := Datum (ikey (fst xr)) (serr (fst xr)) (snd xr).

Lemma data_known t : data t (fun p => serr (pin p)) = map datum_of (known t).
Proof. unfold data, known. rewrite map_map. reflexivity. Qed.

Lemma known_add t t' : known (Add t t') = known t ++ known t'.
Proof. unfold known; cbn [paths]. rewrite map_map, <- map_app. reflexivity. Qed.

Lemma known_rescale M a t : known (Rescale M a t) = map (fun xr => (fst xr, S (snd xr))) (known t).
Proof. unfold known; cbn [paths]. rewrite !map_map. reflexivity. Qed.

Lemma known_normalise M a q b t : known (Normalise M a q b t) = map (fun xr => (fst xr, S (snd xr))) (known t).
Proof. unfold known; cbn [paths]. rewrite !map_map. reflexivity. Qed.

Section Programs.
Context {A : arithmetic} {B : functions}.

(* fl rounds every result, ex is the exponential that is called. *)
Variables fl ex : R -> R.
Hypothesis fl_op : forall x, rounds eta x (fl x).
Hypothesis fl_add : forall a b, fmt a -> fmt b -> rounds 0 (a + b) (fl (a + b)).
Hypothesis fl_sub : forall a b, fmt a -> fmt b -> rounds 0 (a - b) (fl (a - b)).
Hypothesis ex_ok : forall x, fmt x -> x <= 0 -> exps x (ex x).

Lemma fmt_fl x : fmt (fl x).
Proof. apply (in_format _ _ _ (fl_op x)). Qed.

Lemma fl_exact x : fmt x -> fl x = x.
Proof. apply (exact _ _ _ (fl_op x)). Qed.

Lemma fmt_0 : fmt 0.
Proof. rewrite <- (rounds_zero _ _ (fl_op 0)). apply fmt_fl. Qed.

Lemma rounds_weaken e e' x r : e <= e' -> rounds e x r -> rounds e' x r.
Proof. intros L [H1 H2 H3 H4 H5 H6]. split; try assumption. lra. Qed.

Lemma fl_oadd a b : fmt a -> fmt b -> rounds oadd (a + b) (fl (a + b)).
Proof. intros. eapply rounds_weaken; [apply oadd_nonneg|]. now apply fl_add. Qed.

Lemma exp_of_fl a b : fmt a -> fmt b -> a <= b -> exp_of a b (ex (fl (a - b))) /\ fmt (ex (fl (a - b))).
Proof.
  intros Ha Hb L. assert (X := fl_sub a b Ha Hb).
  assert (E : exps (fl (a - b)) (ex (fl (a - b)))).
  { apply ex_ok; [apply fmt_fl|]. apply (not_above_0 _ _ _ X). lra. }
  split; [now exists (fl (a - b))|]. now apply (exp_in_format _ _ E).
Qed.

(* ---- Keys added to a state: rung 02, and a split of rung 05 ------------------------------------------------------ *)

Definition weight M x := ex (fl (shat x - M)).
Definition add_key M (lo : R * R) x :=
  (fl (fst lo + weight M x), fl (snd lo + fl (weight M x * value (ikey x)))).
Definition attend M xs := fold_left (add_key M) xs (0, 0).

Definition good M x := fmt (shat x) /\ shat x <= M.
Definition leaf M x := Leaf x M (weight M x).
Definition comb M t xs := fold_left (fun t x => Add t (leaf M x)) xs t.

Lemma weight_fmt M x : fmt M -> good M x -> fmt (weight M x).
Proof. intros HM [F L]. now apply exp_of_fl. Qed.

Lemma first_key M x : fmt M -> good M x -> add_key M (0, 0) x = (weight M x, fl (weight M x * value (ikey x))).
Proof.
  intros HM G. unfold add_key; cbn [fst snd]. rewrite !Rplus_0_l, (fl_exact (fl _)) by apply fmt_fl.
  now rewrite fl_exact by now apply weight_fmt.
Qed.

Lemma comb_run M xs : fmt M -> Forall (good M) xs -> forall t l o, run t l o -> fmt l -> fmt o ->
  let lo := fold_left (add_key M) xs (l, o) in run (comb M t xs) (fst lo) (snd lo) /\ fmt (fst lo) /\ fmt (snd lo).
Proof.
  intros HM. induction xs as [|x xs IH]; intros G t l o Hr Hl Ho; [now repeat split|].
  apply Forall_cons_iff in G. destruct G as [G Gs]. apply (IH Gs); [|apply fmt_fl|apply fmt_fl].
  cbn [fst snd]. eapply run_add; [exact Hr|apply run_leaf, fl_op| |].
  - apply fl_add; [exact Hl|now apply weight_fmt].
  - apply fl_oadd; [exact Ho|apply fmt_fl].
Qed.

Lemma leaf_shifts M x : fmt M -> good M x -> shifts_ok (leaf M x).
Proof. intros HM [F L]. split; [exact L|]. now apply exp_of_fl. Qed.

Lemma comb_shifts M xs t : fmt M -> Forall (good M) xs -> shifts_ok t -> shift t = M ->
  shifts_ok (comb M t xs) /\ shift (comb M t xs) = M.
Proof.
  intros HM. revert t; induction xs as [|x xs IH]; intros t G S E; [now split|].
  apply Forall_cons_iff in G. destruct G as [G Gs]. apply (IH (Add t (leaf M x)) Gs); [|exact E].
  split; [exact S|]. split; [now apply leaf_shifts|exact E].
Qed.

Lemma comb_known M xs t : known (comb M t xs) = known t ++ map (fun x => (x, 1%nat)) xs.
Proof.
  revert t; induction xs as [|x xs IH]; intros t; [now rewrite app_nil_r|].
  change (comb M t (x :: xs)) with (comb M (Add t (leaf M x)) xs).
  rewrite IH, known_add, <- app_assoc. reflexivity.
Qed.

Lemma comb_counts M xs t : adds (comb M t xs) = (length xs + adds t)%nat /\ rescales (comb M t xs) = rescales t /\
  norms (comb M t xs) = norms t /\ rescaled (comb M t xs) = rescaled t /\ stored (comb M t xs) = stored t.
Proof.
  revert t; induction xs as [|x xs IH]; intros t; [now repeat split|].
  change (comb M t (x :: xs)) with (comb M (Add t (leaf M x)) xs).
  destruct (IH (Add t (leaf M x))) as (-> & -> & -> & -> & ->). cbn [adds rescales norms rescaled stored length].
  cbn [leaf adds rescales norms rescaled stored]. rewrite !Nat.max_0_r, !Rplus_0_r. repeat split; lia.
Qed.

Lemma attend_run M x xs : fmt M -> Forall (good M) (x :: xs) ->
  let t := comb M (leaf M x) xs in let lo := attend M (x :: xs) in
  run t (fst lo) (snd lo) /\ shifts_ok t /\ shift t = M /\ fmt (fst lo) /\ fmt (snd lo).
Proof.
  intros HM G t lo. apply Forall_cons_iff in G. destruct G as [G Gs].
  assert (E : lo = fold_left (add_key M) xs (weight M x, fl (weight M x * value (ikey x))))
    by (unfold lo, attend; cbn [fold_left]; now rewrite first_key).
  destruct (comb_run M xs HM Gs (leaf M x) _ _ (run_leaf x M (weight M x) _ (fl_op _)) (weight_fmt M x HM G) (fmt_fl _))
    as (R1 & R2 & R3). rewrite <- E in R1, R2, R3.
  destruct (comb_shifts M xs (leaf M x) HM Gs (leaf_shifts M x HM G) eq_refl) as [S1 S2].
  repeat split; assumption.
Qed.

(* A property of all keys of a tree, from the keys. *)
Lemma paths_known t (P : input -> Prop) : Forall P (map fst (known t)) -> forall p, In p (paths t) -> P (pin p).
Proof.
  unfold known; rewrite map_map; intros H p I. rewrite Forall_forall in H. apply H.
  apply (in_map (fun p => fst (pin p, met p)) _ _ I).
Qed.

Lemma known_paths t x : In x (map fst (known t)) -> exists p, In p (paths t) /\ pin p = x.
Proof.
  unfold known; rewrite map_map; intros I. apply in_map_iff in I. destruct I as (p & E & I). now exists p.
Qed.

(* What is assumed of the keys: logits within e_j, top and E as in README.md. *)
Definition logits_ok xs := Forall (fun x => Rabs (shat x - logit (ikey x)) <= serr x) xs.
Definition E_ok top E xs := Forall (fun x => serr x - (top - logit (ikey x)) <= E) xs.

(* pass_line_stated for a tree whose keys are known. *)
Lemma tree_pass_line t l o top E : run t l o -> shifts_ok t ->
  (exists x, In x (map fst (known t)) /\ shat x = shift t) ->
  logits_ok (map fst (known t)) -> E_ok top E (map fst (known t)) ->
  let ds := map datum_of (known t) in
  0 < readme_den ds top E (adds t) (norms t) (rescales t) (rescaled t) ->
  Rabs (fl (o / l) - attention (map dkey ds))
    <= readme_bound ds top E (adds t) (norms t) (rescales t) (rescaled t) (stored t).
Proof.
  intros Hr Hs (x & I & Ex) HL HE ds. unfold ds; rewrite <- data_known. intros P.
  apply (pass_line_stated t l o); try assumption; [| | |apply fl_op].
  - destruct (known_paths t x I) as (p & Ip & Ep). exists p; split; [exact Ip|]. unfold computed; now rewrite Ep.
  - exact (paths_known t _ HL).
  - exact (paths_known t _ HE).
Qed.

(* Theorem: rung 02. n keys, one exponential each, n - 1 additions: hN = n, hD = n - 1. *)
Theorem rung_02 M top E x xs : let ks := x :: xs in
  fmt M -> Forall (good M) ks -> (exists y, In y ks /\ shat y = M) -> logits_ok ks -> E_ok top E ks ->
  let ds := map (fun y => Datum (ikey y) (serr y) 1) ks in let n := length ks in
  0 < readme_den ds top E (n - 1) 0 0 0 ->
  let lo := attend M ks in
  Rabs (fl (snd lo / fst lo) - attention (map ikey ks)) <= readme_bound ds top E (n - 1) 0 0 0 0.
Proof.
  intros ks HM G Top HL HE ds n P lo. destruct (attend_run M x xs HM G) as (Hr & Hs & Es & _).
  assert (K := comb_known M xs (leaf M x)). destruct (comb_counts M xs (leaf M x)) as (C1 & C2 & C3 & C4 & C5).
  set (t := comb M (leaf M x) xs) in *. change (known (leaf M x)) with [(x, 1%nat)] in K.
  change ([(x, 1%nat)] ++ _) with (map (fun y => (y, 1%nat)) ks) in K.
  assert (F : map fst (known t) = ks) by (rewrite K, map_map; apply map_id).
  assert (D : map datum_of (known t) = ds) by (rewrite K, map_map; reflexivity).
  cbn [leaf adds rescales norms rescaled stored] in C1, C2, C3, C4, C5.
  assert (N : adds t = (n - 1)%nat) by (rewrite C1; unfold n; simpl; lia).
  assert (T := tree_pass_line t _ _ top E Hr Hs). cbv zeta in T. rewrite F, D, N, C2, C3, C4, C5, Es in T.
  assert (Q : map dkey ds = map ikey ks) by (unfold ds; rewrite map_map; reflexivity).
  rewrite <- Q. apply T; assumption.
Qed.

End Programs.
