(* The points at which the judge's C code and this development compute the same bound. check.sh writes what [table]
   evaluates to into bridge.csv; tests/test_bridge.c asks tests/bound.c for the same numbers. *)
From Coq Require Import ZArith List.
From Interval Require Import Xreal Interval.
From FD Require Import Evaluate Formula Levels Counts.
Import ListNotations.
Open Scope Z_scope.

(* ---- The points -------------------------------------------------------------------------------------------------- *)

(* binary32 with a libm's constants; a coarse format in which second-order terms show; underflow that dominates. *)
Definition arithmetics := [
  Rounding (1, -24) (1, -150) (17, -28) (1, -149) (1, -23);
  Rounding (1, -8) (1, -40) (3, -9) (1, -38) (5, -10);
  Rounding (1, -20) (1, -16) (1, -20) (3, -15) (1, -19)].

(* A linear congruential generator; the high bits. *)
Definition next s := (s * 6364136223846793005 + 1442695040888963407) mod 2 ^ 64.
Definition draw s n := (s / 2 ^ 40) mod n.
Fixpoint states n s := match n with O => [] | S n => s :: states n (next s) end.

(* Keys: gap_j in steps of 2^-6 up to 16, a quarter of them 0; a_j up to 32, an eighth of them 0; v_j in eighths. *)
Definition random_key s := let a := next s in let v := next a in let z := next v in
  JKey (if draw z 8 =? 0 then 0 else 1 + draw a 512, -4) (if draw z 4 =? 1 then 0 else draw s 1024, -6)
    (draw v 129 - 64, -3) 1.
Definition lower_gap m k := JKey (ka k) (fst (kgap k) - m, -6) (kv k) (kR k).
Definition random_keys n s :=
  let ks := map random_key (states n s) in
  let least := fold_right (fun k m => Z.min (fst (kgap k)) m) 1024 ks in map (lower_gap least) ks.

Inductive tree_kind := Added | AddedTree | Running | Split | SplitRescaled.
Definition levels_of k (n C : nat) : list level := let K := (Nat.div (n + C - 1) C) in match k with
  | Added => [Level n ADD SEQUENTIAL] | AddedTree => [Level n ADD TREE] | Running => [Level n RUNNING SEQUENTIAL]
  | Split => [Level C ADD SEQUENTIAL; Level K NORMALISED SEQUENTIAL]
  | SplitRescaled => [Level C ADD SEQUENTIAL; Level K RESCALE SEQUENTIAL] end.

(* A later key certainly does not raise a running maximum if its logit, taken high, is not above an earlier one, taken
   low: decided by intervals, so that "not" is proved. *)
Definition not_above x y := match I.sign_large (@sub intervals x y) with Xlt | Xeq => true | _ => false end.
Section Raises.
Variables (M : margin) (r : rounding) (w : row).
Definition high k := @sub intervals (j_e intervals M r w k) (dyadic (kgap k)).
Definition low k := @sub intervals (@sub intervals (whole 0) (j_e intervals M r w k)) (dyadic (kgap k)).
Fixpoint raise_flags earlier ks := match ks with
  | [] => []
  | k :: ks => negb (existsb (fun i => not_above (high k) (low i)) earlier) :: raise_flags (k :: earlier) ks
  end.
(* R_j: its own exponential and the later keys that may raise the maximum. *)
Fixpoint with_raises ks flags := match ks, flags with
  | k :: ks, _ :: flags => JKey (ka k) (kgap k) (kv k) (S (length (filter (fun b => b) flags))) :: with_raises ks flags
  | _, _ => []
  end.
End Raises.

Definition set_R n k := JKey (ka k) (kgap k) (kv k) n.
Definition counted M r w kd ks := match kd with
  | Added | AddedTree => ks
  | Running => with_raises ks (raise_flags M r w [] ks)
  | Split | SplitRescaled => map (set_R 2%nat) ks end.
Definition most_R ks := fold_right (fun k m => Nat.max (kR k) m) 1%nat ks.

(* The tally of the tree itself, counted on it (Levels.v); a running maximum: X as if every key raised. *)
Definition tally_of kd n C ks := match tree_of (levels_of kd n C) n with
  | Some t => Some (Tally (adds t) (norms t) (most_R ks - 1) 
      (match kd with Running => n | _ => products t end) (stores t))
  | None => None end.

(* ---- The table --------------------------------------------------------------------------------------------------- *)

Definition flat (x : dyad) := [fst x; snd x].
Definition ends_of i := match ends i with Some (l, h) => flat l ++ flat h | None => [] end.
Definition point kd (number : Z) (n C d : nat) r s :=
  let w := Row d (2 * draw s 8 + 1, -6) (draw (next s) 257 - 128, -4) in
  let keys := random_keys n (next (next s)) in
  let at_margin M := let ks := counted M r w kd keys in match tally_of kd n C ks with
    | Some c => ends_of (j_bound intervals M r w c ks) ++ ends_of (j_lse_bound intervals M r w c ks) | None => [] end in
  [[number; Z.of_nat n; Z.of_nat C; Z.of_nat d];
   flat (ru r) ++ flat (reta r) ++ flat (reps r) ++ flat (reta_e r) ++ flat (reps_l r)
     ++ flat (scale w) ++ flat (top w);
   at_margin page ++ at_margin judge] ++ map (fun k => flat (ka k) ++ flat (kgap k) ++ flat (kv k)) keys.

Definition kinds := [(Added, 1); (AddedTree, 2); (Running, 3); (Split, 4); (SplitRescaled, 5)].
Definition sizes : list (nat * nat * nat) := [(1, 1, 1); (2, 1, 48); (5, 2, 3); (6, 4, 32); (7, 3, 8)]%nat.
Definition table := flat_map (fun kn => flat_map (fun rn => map (fun z =>
    let '(n, C, d) := z in
    point (fst kn) (snd kn) n C d (fst rn) (next (snd kn * 1000 + snd rn * 100 + Z.of_nat (n + d))))
  sizes) (combine arithmetics [1; 2; 3])) kinds.
