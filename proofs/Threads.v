(* Rung 06: the pieces of rung 05 in any order, each writing its own slot. The loops of a piece are two, first l, then
   o; they give what one loop gives. *)
From Coq Require Import Reals List Permutation.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights Bound Counts PassLine Programs Split Rung05.
Import ListNotations.
Open Scope R_scope.

(* ---- Pieces and slots -------------------------------------------------------------------------------------------- *)

Section Slots.
Context {V : Type}.
Variable piece : nat -> V.

Definition write (mem : nat -> V) i := fun j => if Nat.eqb j i then piece i else mem j.
Definition run_all mem is := fold_left write is mem.

Lemma run_all_slot is : forall mem j, run_all mem is j = if in_dec Nat.eq_dec j is then piece j else mem j.
Proof.
  induction is as [|i is IH]; intros mem j; [reflexivity|].
  change (run_all mem (i :: is)) with (run_all (write mem i) is).
  rewrite IH. unfold write. destruct (Nat.eqb_spec j i) as [->|N].
  - destruct (in_dec _ i is), (in_dec _ i (i :: is)) as [|C]; try reflexivity; now destruct C; left.
  - destruct (in_dec _ j is) as [I|I], (in_dec _ j (i :: is)) as [I'|I']; try reflexivity.
    + now destruct I'; right.
    + destruct I'; [congruence|contradiction].
Qed.

(* Theorem: whatever the schedule, the slots hold the same. *)
Theorem any_schedule mem is is' : Permutation is is' -> forall j, run_all mem is j = run_all mem is' j.
Proof.
  intros P j. rewrite !run_all_slot. destruct (in_dec _ j is) as [I|I], (in_dec _ j is') as [I'|I']; try reflexivity.
  - now destruct I'; apply (Permutation_in _ P).
  - destruct I; exact (Permutation_in _ (Permutation_sym P) I').
Qed.
End Slots.

(* ---- Rung 06 ----------------------------------------------------------------------------------------------------- *)

Section Threads.
Context {A : arithmetic} {B : functions}.
Variables fl ex : R -> R.
Hypothesis fl_op : forall x, rounds eta x (fl x).
Hypothesis fl_add : forall a b, fmt a -> fmt b -> rounds 0 (a + b) (fl (a + b)).
Hypothesis fl_sub : forall a b, fmt a -> fmt b -> rounds 0 (a - b) (fl (a - b)).
Hypothesis ex_ok : forall x, fmt x -> x <= 0 -> exps x (ex x).

(* A piece, loop by loop, as in 05 and 06. *)
Definition sum_l M xs := fold_left (fun l x => fl (l + weight fl ex M x)) xs 0.
Definition sum_o M xs := fold_left (fun o x => fl (o + fl (weight fl ex M x * value (ikey x)))) xs 0.
Definition piece_of p := let l := sum_l (pm p) (pkeys p) in (pm p, (l, fl (sum_o (pm p) (pkeys p) / l))).

Lemma two_loops M xs : (sum_l M xs, sum_o M xs) = attend fl ex M xs.
Proof.
  unfold sum_l, sum_o, attend. enough (H : forall l o,
    (fold_left (fun l x => fl (l + weight fl ex M x)) xs l,
     fold_left (fun o x => fl (o + fl (weight fl ex M x * value (ikey x)))) xs o)
    = fold_left (add_key fl ex M) xs (l, o))
    by apply H.
  induction xs as [|x xs IH]; intros l o; [reflexivity|]. cbn [fold_left]. rewrite IH. reflexivity.
Qed.

Lemma piece_is p : piece_of p = (pm p, (part_l fl ex p, part_o fl ex p)).
Proof. unfold piece_of, part_o, part_l. rewrite <- two_loops. reflexivity. Qed.

(* Stage 2 reads the slots in their order, whoever wrote them. *)
Definition add_slot M (lo : R * R) (s : R * (R * R)) := let w := fl (ex (fl (fst s - M)) * fst (snd s)) in
  (fl (fst lo + w), fl (snd lo + fl (w * snd (snd s)))).
Definition threads M parts mem order :=
  let slots := run_all (fun i => piece_of (nth i parts (hd (Part 0 (Input (Key 0 0) 0 0) []) parts))) mem order in
  fold_left (add_slot M) (map slots (seq 0 (length parts))) (0, 0).

Lemma fold_map {X Y Z} (f : Z -> Y -> Z) (g : X -> Y) xs : forall z, fold_left f (map g xs) z =
  fold_left (fun z x => f z (g x)) xs z.
Proof. induction xs as [|x xs IH]; intros z; [reflexivity|]. apply IH. Qed.

Lemma nth_seq {X} (d : X) xs : map (fun i => nth i xs d) (seq 0 (length xs)) = xs.
Proof.
  induction xs as [|x xs IH]; [reflexivity|]. cbn [length seq map nth]. rewrite <- seq_shift, map_map. now rewrite IH.
Qed.

(* Theorem: the result of 05, bit for bit, whatever order the pieces are computed in, and on whatever old memory. *)
Theorem rung_06_is_05 M parts mem order : Permutation order (seq 0 (length parts)) ->
  threads M parts mem order = combine fl ex M parts.
Proof.
  intros P. unfold threads. set (d := hd _ parts). cbv zeta.
  set (piece i := piece_of (nth i parts d)).
  replace (map (run_all piece mem order) (seq 0 (length parts))) with (map piece_of parts).
  - unfold combine. rewrite fold_map. assert (G : forall ps z, fold_left (fun z p => add_slot M z (piece_of p)) ps z =
      fold_left (add_part fl ex M) ps z).
    { induction ps as [|p ps IH]; intros z; [reflexivity|]. cbn [fold_left]. rewrite IH. f_equal.
      rewrite piece_is. reflexivity. }
    apply G.
  - rewrite <- (nth_seq d parts) at 1. rewrite map_map. apply map_ext_in. intros i I.
    rewrite run_all_slot. destruct (in_dec _ i order) as [|C]; [reflexivity|].
    destruct C. exact (Permutation_in _ (Permutation_sym P) I).
Qed.

(* Theorem: rung 06 has the bound of rung 05. *)
Theorem rung_06 M top E C vm p ps mem order : let parts := p :: ps in let ks := all_keys parts in
  let K := length parts in Permutation order (seq 0 K) ->
  fmt M -> Forall (part_ok M) parts -> (exists y, In y ks /\ shat y = M) ->
  Forall (fun c => length (pkeys c) <= C)%nat parts -> Forall (fun x => Rabs (value (ikey x)) <= vm) ks ->
  logits_ok ks -> E_ok top E ks ->
  let ds := map (fun x => Datum (ikey x) (serr x) 2) ks in
  let St := INR K * part_size C vm + (1 + u) ^ (C - 1) * INR (length ks) in
  0 < readme_den ds top E (C + K - 2) 1 1 (INR K) ->
  let lo := threads M parts mem order in
  Rabs (fl (snd lo / fst lo) - attention (map ikey ks)) <= readme_bound ds top E (C + K - 2) 1 1 (INR K) St.
Proof.
  intros parts ks K Pm HM G Top HC Hv HL HE ds St P lo. unfold lo. rewrite rung_06_is_05 by exact Pm.
  now apply (rung_05 fl ex fl_op fl_add fl_sub ex_ok M top E C vm p ps).
Qed.
End Threads.
