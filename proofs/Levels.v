(* The merge trees that a rung may declare (fd_arith.level), built and counted: what tests/bound.c counts from the
   declaration is compared with these numbers (check.sh, tests/test_bridge.c). *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Algebra Tree Counts.
Import ListNotations.
Open Scope nat_scope.

Inductive kind := ADD | RUNNING | RESCALE | NORMALISED.
Inductive order := SEQUENTIAL | TREE.
Record level := Level { ways : nat; merge : kind; joined : order }.

(* No number matters to the counts. *)
Definition any_key := Leaf (Input (Key 0 0) 0 0) 0 1.
Definition weighed k t := match k with
  | ADD | RUNNING => t | RESCALE => Rescale 0%R 1%R t | NORMALISED => Normalise 0%R 1%R 0%R 0%R t end.

(* In sequence: each part weighed once, then added. A running maximum: every part raises it, the worst case; parts that
   have shifts of their own ([merged]) are rescaled on their way in. In a tree: neighbours are weighed and added. *)
Definition in_sequence merged k ts := match ts with
  | [] => any_key
  | t :: ts => match k with
    | RUNNING => let enter t := if merged : bool then Rescale 0%R 1%R t else t in
        fold_left (fun a t => Add (Rescale 0%R 1%R a) (enter t)) ts (enter t)
    | _ => fold_left (fun a t => Add a (weighed k t)) ts (weighed k t)
    end
  end.
Fixpoint pairs k ts := match ts with
  | t :: t' :: ts => Add (weighed k t) (weighed k t') :: pairs k ts
  | _ => ts
  end.
Fixpoint in_tree fuel k ts := match fuel, ts with
  | _, [t] => t | S fuel, _ => in_tree fuel k (pairs k ts) | O, _ => any_key end.

Fixpoint chunks fuel (w : nat) (ts : list tree) := match fuel, ts with
  | S fuel, _ :: _ => firstn w ts :: chunks fuel w (skipn w ts) | _, _ => [] end.
Fixpoint build merged ls ts := match ls with
  | [] => ts
  | l :: ls => let join g := match joined l with
      | SEQUENTIAL => in_sequence merged (merge l) g | TREE => in_tree (length g) (merge l) g end in
    build (match merge l with ADD => merged | _ => true end) ls (map join (chunks (length ts) (ways l) ts))
  end.
Definition tree_of ls n := match build false ls (repeat any_key n) with [t] => Some t | _ => None end.

(* X and P, as numbers; [rescaled] of Counts.v is the first. *)
Fixpoint products t : nat := match t with
  | Leaf _ _ _ => 0 | Add t t' => products t + products t' | Rescale _ _ t | Normalise _ _ _ _ t => S (products t) end.
Fixpoint stores t : nat := match t with
  | Leaf _ _ _ => 0 | Add t t' => stores t + stores t' | Rescale _ _ t => stores t | Normalise _ _ _ _ t => S (stores t)
  end.
Lemma products_rescaled t : rescaled t = INR (products t).
Proof.
  induction t as [i M w|t IH t' IH'|M a t IH|M a q b t IH]; cbn [rescaled products];
    rewrite ?plus_INR, ?S_INR; cbn [INR]; lra.
Qed.

(* A, R_j at most (its own exponential included), normalised levels, hN and hD at most on the keys' ways, X, P. *)
Definition most f (t : tree) := fold_right (fun x s => Nat.max (f x) s) 0%nat (paths t).
Definition tallied t := [adds t; most met t; norms t; most up t; most down t; products t; stores t].

(* ---- The table --------------------------------------------------------------------------------------------------- *)

Definition kind_number k := match k with ADD => 1 | RUNNING => 2 | RESCALE => 3 | NORMALISED => 4 end.
Definition order_number o := match o with SEQUENTIAL => 1 | TREE => 2 end.
Definition some_levels : list (list level) :=
  let one := flat_map (fun w => [[Level w ADD SEQUENTIAL]; [Level w ADD TREE]; [Level w RUNNING SEQUENTIAL]])
    [1; 2; 3; 5; 8; 13] in
  let two := flat_map (fun w => flat_map (fun k => [
      [Level w ADD SEQUENTIAL; Level 3 k SEQUENTIAL]; [Level w ADD TREE; Level 4 k SEQUENTIAL];
      [Level w ADD SEQUENTIAL; Level 5 k TREE]; [Level w RUNNING SEQUENTIAL; Level 4 k TREE]])
    [RESCALE; NORMALISED]) [1; 4; 6] in
  let tiles := map (fun w => [Level w ADD SEQUENTIAL; Level 4 RUNNING SEQUENTIAL]) [2; 5] in
  let three := [[Level 3 ADD SEQUENTIAL; Level 2 RESCALE TREE; Level 3 NORMALISED SEQUENTIAL];
    [Level 2 ADD SEQUENTIAL; Level 3 RUNNING SEQUENTIAL; Level 4 NORMALISED TREE];
    [Level 2 ADD TREE; Level 4 RESCALE TREE; Level 2 RUNNING SEQUENTIAL];
    [Level 2 ADD SEQUENTIAL; Level 2 NORMALISED SEQUENTIAL; Level 3 NORMALISED TREE]] in
  one ++ two ++ tiles ++ three.

Definition full ls := fold_right (fun l n => ways l * n)%nat 1%nat ls.
Definition lengths ls := let n := full ls in
  nodup PeanoNat.Nat.eq_dec (filter (fun k => Nat.leb 1 k && Nat.leb k n)%bool [1; n / 2 + 1; n - 1; n])%nat.
Definition counts_table := flat_map (fun ls => flat_map (fun n => match tree_of ls n with
  | Some t => [n :: tallied t ++ flat_map (fun l => [ways l; kind_number (merge l); order_number (joined l)]) ls]
  | None => []
  end) (lengths ls)) some_levels.
