(* Section 3 of README.md: which keys can raise a running maximum, from exact logits and their error bounds alone. The
   judge counts those; the program raises no more often. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound Counts PassLine Grow Programs Online.
Import ListNotations.
Open Scope R_scope.

(* Key x certainly does not raise a maximum over i: its logit, taken high, is not above that of i, taken low. *)
Definition surely_below x i : bool :=
  if Rle_dec (logit (ikey x) + serr x) (logit (ikey i) - serr i) then true else false.
Definition can_raise earlier x := negb (existsb (surely_below x) earlier).
Fixpoint raises_judged earlier xs := match xs with
  | [] => 0%nat
  | x :: xs => ((if can_raise earlier x then 1 else 0) + raises_judged (x :: earlier) xs)%nat
  end.
(* R_j as the judge has it. *)
Fixpoint judged_known earlier xs := match xs with
  | [] => []
  | x :: xs => (x, S (raises_judged (x :: earlier) xs)) :: judged_known (x :: earlier) xs
  end.

Lemma raising_is_counted earlier m x : logits_ok (x :: earlier) ->
  (forall i, In i earlier -> shat i <= m) -> m < shat x -> can_raise earlier x = true.
Proof.
  intros L H R. unfold can_raise. apply Bool.negb_true_iff. destruct (existsb _ earlier) eqn:E; [|reflexivity].
  apply existsb_exists in E. destruct E as (i & I & S). unfold surely_below in S.
  destruct (Rle_dec _ _) as [Le|]; [|discriminate].
  assert (Lx := proj1 (Forall_forall _ _) L x (or_introl eq_refl)).
  assert (Li := proj1 (Forall_forall _ _) L i (or_intror I)). cbv beta in Lx, Li. apply abs_le in Lx, Li.
  specialize (H i I). lra.
Qed.

(* Theorem: the program raises its maximum at most as often as the judge counts. *)
Theorem raises_at_most xs : forall earlier m, logits_ok (earlier ++ xs) -> (forall i, In i earlier -> shat i <= m) ->
  (raises m xs <= raises_judged earlier xs)%nat.
Proof.
  induction xs as [|x xs IH]; intros earlier m L H; [cbn; lia|].
  assert (Lx : logits_ok ((x :: earlier) ++ xs)).
  { unfold logits_ok in *. rewrite Forall_forall in *. intros y I. apply L. apply in_app_iff.
    destruct I as [<-|I]; [right; now left|]. apply in_app_iff in I. destruct I; [now left|right; now right]. }
  assert (L0 : logits_ok (x :: earlier)).
  { unfold logits_ok in *. rewrite Forall_forall in *. intros y I. apply Lx, in_app_iff. now left. }
  cbn [raises raises_judged]. destruct (Rlt_dec m (shat x)) as [R|R].
  - rewrite (raising_is_counted earlier m x L0 H R).
    assert (K : (raises (shat x) xs <= raises_judged (x :: earlier) xs)%nat).
    { apply IH; [exact Lx|]. intros i [<-|I]; [lra|]. specialize (H i I). lra. }
    lia.
  - assert (K : (raises m xs <= raises_judged (x :: earlier) xs)%nat).
    { apply IH; [exact Lx|]. intros i [<-|I]; [lra|]. exact (H i I). }
    destruct (can_raise earlier x); lia.
Qed.

Lemma known_at_most xs : forall earlier m, logits_ok (earlier ++ xs) -> (forall i, In i earlier -> shat i <= m) ->
  Forall2 le_datum (map datum_of (online_known m xs)) (map datum_of (judged_known earlier xs)).
Proof.
  induction xs as [|x xs IH]; intros earlier m L H; [constructor|].
  assert (Lx : logits_ok ((x :: earlier) ++ xs)).
  { unfold logits_ok in *. rewrite Forall_forall in *. intros y I. apply L. apply in_app_iff.
    destruct I as [<-|I]; [right; now left|]. apply in_app_iff in I. destruct I; [now left|right; now right]. }
  cbn [online_known judged_known map]. set (m' := if Rlt_dec m (shat x) then shat x else m).
  assert (H' : forall i, In i (x :: earlier) -> shat i <= m').
  { intros i [<-|I]; unfold m'; destruct (Rlt_dec m (shat x)); try lra; specialize (H i I); lra. }
  constructor; [|now apply IH]. unfold le_datum, datum_of; cbn [dkey de dR fst snd].
  assert (K := raises_at_most xs (x :: earlier) m' Lx H'). repeat split; try lra; lia.
Qed.

Section Judged.
Context {A : arithmetic} {B : functions}.
Variables fl ex : R -> R.
Hypothesis fl_op : forall x, rounds eta x (fl x).
Hypothesis fl_add : forall a b, fmt a -> fmt b -> rounds 0 (a + b) (fl (a + b)).
Hypothesis fl_sub : forall a b, fmt a -> fmt b -> rounds 0 (a - b) (fl (a - b)).
Hypothesis ex_ok : forall x, fmt x -> x <= 0 -> exps x (ex x).

(* Theorem: rung 03 with the judge's counts: hN and hD from the keys that can raise the maximum, X = n. *)
Theorem rung_03_judged top E x xs : let ks := x :: xs in
  Forall (fun y => fmt (shat y)) ks -> logits_ok ks -> E_ok top E ks ->
  let ds := map datum_of (judged_known [] ks) in
  let n := length ks in let r := raises_judged [x] xs in
  0 < readme_den ds top E (n - 1) 0 r (INR n) ->
  let lo := snd (online fl ex x xs) in
  Rabs (fl (snd lo / fst lo) - attention (map ikey ks)) <= readme_bound ds top E (n - 1) 0 r (INR n) 0.
Proof.
  intros ks G HL HE ds n r P lo.
  assert (H1 : forall i, In i [x] -> shat i <= shat x) by (intros i [<-|[]]; lra).
  assert (Rr := raises_at_most xs [x] (shat x) HL H1). fold r in Rr.
  set (ds0 := map datum_of ((x, S (raises (shat x) xs)) :: online_known (shat x) xs)).
  assert (Dg : Forall2 le_datum ds0 ds).
  { unfold ds0, ds, ks. cbn [judged_known map]. constructor; [|now apply known_at_most].
    unfold le_datum, datum_of; cbn [dkey de dR fst snd]. fold r. repeat split; try lra; lia. }
  assert (Ne : ds0 <> []) by discriminate.
  assert (Rn : (raises (shat x) xs <= n)%nat).
  { unfold n, ks. cbn [length]. enough (T : forall m, (raises m xs <= length xs)%nat) by (specialize (T (shat x)); lia).
    clear. induction xs as [|y ys IH]; intros m; cbn [raises length]; [lia|].
    destruct (Rlt_dec m (shat y)); [specialize (IH (shat y))|specialize (IH m)]; lia. }
  assert (X0 : 0 <= INR (raises (shat x) xs) <= INR n) by (split; [apply pos_INR|now apply le_INR]).
  assert (S0 : 0 <= 0 <= 0) by lra.
  assert (Dn := den_shrinks ds0 ds top E E (n - 1) (n - 1) 0 0 (raises (shat x) xs) r _ _ 0 0
    Dg Ne ltac:(lra) ltac:(lia) ltac:(lia) Rr X0 S0).
  assert (T0 := rung_03 fl ex fl_op fl_add fl_sub ex_ok top E x xs G HL HE). cbv zeta in T0. fold ks ds0 n lo in T0.
  eapply Rle_trans; [apply T0; lra|].
  apply bound_grows; try assumption; try lia; try lra.
  intros y I. apply in_map_iff in I. destruct I as (d & <- & I). cbn [Z].
  assert (T : exists z, In z ks /\ dkey d = ikey z /\ de d = serr z).
  { unfold ds0 in I. apply in_map_iff in I. destruct I as (p & <- & I). exists (fst p). split; [|now split].
    destruct I as [<-|I]; [now left|right]. rewrite <- (online_known_fst (shat x) xs). now apply in_map. }
  destruct T as (z & Iz & -> & ->).
  assert (Hl := proj1 (Forall_forall _ _) HL z Iz). assert (He := proj1 (Forall_forall _ _) HE z Iz).
  cbv beta in Hl, He.
  assert (Pa := Rabs_pos (shat z - logit (ikey z))). assert (U := u_range). assert (Pp := eps'_nonneg).
  assert (T1 : 0 <= u * (top - logit (ikey z) + serr z + E)) by (apply Rmult_le_pos; lra).
  assert (T2 : 0 <= INR (dR d) * eps') by (apply Rmult_le_pos; [apply pos_INR|exact Pp]). lra.
Qed.
End Judged.
