(* The pass line as a formula of what the judge knows of a row, line by line that of tests/bound.c: the statement of
   README.md, and the same with the judge's inflations. Covers.v: the theorems' bound is below. Bridge.v computes it. *)
From Coq Require Import Reals ZArith Lra Lia List.
From Flocq Require Import Core.
From FD Require Import Sum Round Exp Algebra Quotient PassLine Grow Lse Coarse JudgeU Dot Evaluate.
Import ListNotations.

(* The arithmetic and the row; a key: a_j, gap_j, v_j, R_j. Dyadic numbers, so that C reads them without rounding. *)
Record rounding := Rounding { ru : dyad; reta : dyad; reps : dyad; reta_e : dyad; reps_l : dyad }.
Record row := Row { head_dim : nat; scale : dyad; top : dyad }.
Record jkey := JKey { ka : dyad; kgap : dyad; kv : dyad; kR : nat }.
(* A, normalised levels, rescales of one key at most (its own exponential not counted); X and P. *)
Record tally := Tally { tA : nat; tL : nat; tR : nat; tX : nat; tP : nat }.
(* What a double evaluation adds: a factor on e_j, Z_j, E0 and the whole; a factor on the absolute part of e_j; parts of
   gap_j in e_j and of eta in Z_j; an absolute part of E0 for each key. *)
Record margin := Margin { inflate : dyad; floors : dyad; gap_part : dyad; eta_part : dyad; sum_part : dyad }.
Definition page := Margin (1, 0)%Z (1, 0)%Z (0, 0)%Z (0, 0)%Z (0, 0)%Z.
Definition judge := Margin (2 ^ 20 + 1, -20)%Z (2, 0)%Z (1, -50)%Z (1, 0)%Z (1, -52)%Z.

Section Formula.
Variable N : numbers.
Variables (M : margin) (r : rounding) (w : row) (c : tally) (ks : list jkey).
Local Infix "+" := (@add N). Local Infix "-" := (@sub N). Local Infix "*" := (@mul N). Local Infix "/" := (@quo N).
Local Notation d := (@dyadic N). Local Notation one := (@whole N 1).

Definition j_u := d (ru r).
Definition j_eta := d (reta r).
Definition j_up h := power (one + j_u) h.
Definition j_down h := power (one - j_u) h.
Definition j_g h := j_up h - one.

(* e_j, E, the logarithm of the sum over the maximum. *)
Definition j_floor := d (floors M) *
  (size (d (scale w)) * whole (head_dim w) * j_eta * (one + j_g (S (head_dim w))) + j_eta).
Definition j_e k :=
  (if Z.eqb (fst (ka k)) 0 then whole 0 else (j_g (S (head_dim w)) * d (ka k) + j_floor) * d (inflate M))
  + d (gap_part M) * d (kgap k).
Definition j_E := largest (fun k => j_e k - d (kgap k)) ks.
Definition j_c := loga (total (fun k => expo (whole 0 - d (kgap k))) ks).

(* Z_j, hN_j, hD_j, omega_j. *)
Definition j_eps' := whole 0 - loga (one - d (reps r)).
Definition j_Z E ep k := (j_e k + j_u * (d (kgap k) + j_e k + E)
  + whole (kR k) * (ep + d (eta_part M) * j_eta)) * d (inflate M).
Definition j_hN k := (tA c + kR k + 2 * tL c)%nat.
Definition j_hD k := (tA c + kR k - 1)%nat.
Definition j_omega k := d (reta_e r) * whole (kR k) * power (one + d (reps r)) (kR k - 1).
Definition top_N := (1 + tA c + tR c + 2 * tL c)%nat.
Definition top_D := (tA c + tR c)%nat.
Definition j_magnify := j_up top_N / j_down top_D.

(* The sums over the keys. E is j_E, ep is j_eps', lc is j_c, o the exact output: computed once. *)
Section Sums.
Variables (E ep lc : N).
Definition j_p k := expo (whole 0 - d (kgap k) - lc).
Definition j_p_high k := j_p k * expo (j_Z E ep k).
Definition j_Omega := (total j_omega ks + whole 2 * whole (tX c) * j_eta) * expo (E - lc) * j_up top_D.
Definition j_low := total (fun k => j_p k * expo (whole 0 - j_Z E ep k) * j_down (j_hD k)) ks - j_Omega.
Definition j_high := total (fun k => j_p_high k * j_up (j_hD k)) ks + j_Omega.
Definition j_output := total (fun k => j_p k * d (kv k)) ks.
Definition j_num o := total (fun k => j_p k * (expo (j_Z E ep k) - one) * size (d (kv k) - o)
  + j_p_high k * (j_g (j_hN k) * size (d (kv k)) + j_g (j_hD k) * size o)) ks.
End Sums.
Definition j_vmax := largest (fun k => size (d (kv k))) ks.
Definition j_U o := let m2 := j_magnify * j_magnify in
  m2 * (total (fun k => j_omega k * (size (d (kv k)) + size o)) ks
    + whole 2 * j_eta * (whole (length ks) + whole (tX c) * (one + size o)
      + whole 2 * whole (tP c) * j_vmax * j_magnify))
  + j_eta * m2 * (one + whole (tL c)).

Definition j_bound := let E := j_E in let ep := j_eps' in let lc := j_c in let o := j_output lc in
  ((one + j_u) * (j_num E ep lc o / j_low E ep lc) + j_u * size o + j_U o) * d (inflate M).

Definition j_lse_bound := let E := j_E in let ep := j_eps' in let lc := j_c in
  let e0 := larger (loga (j_high E ep lc)) (whole 0 - loga (j_low E ep lc)) * d (inflate M)
    + whole (length ks) * d (sum_part M) in
  let e1 := e0 + d (reps_l r) * (lc + E + e0) in
  (e1 + j_u * (size (d (top w) + lc) + e1)) * d (inflate M).
End Formula.

(* ---- Intervals contain it ---------------------------------------------------------------------------------------- *)

(* By the form of the formula: unification is not to look inside. *)
Ltac enclose := repeat lazymatch goal with
  | |- encloses (add _ _) _ => apply enclosed_add
  | |- encloses (sub _ _) _ => apply enclosed_sub
  | |- encloses (mul _ _) _ => apply enclosed_mul
  | |- encloses (quo _ _) _ => apply enclosed_quo
  | |- encloses (size _) _ => apply enclosed_size
  | |- encloses (expo _) _ => apply enclosed_expo
  | |- encloses (loga _) _ => apply enclosed_loga
  | |- encloses (larger _ _) _ => apply enclosed_larger
  | |- encloses (power _ _) _ => apply enclosed_power
  | |- encloses (whole _) _ => apply enclosed_whole
  | |- encloses (dyadic _) _ => apply enclosed_dyadic
  | |- encloses (total _ _) _ => apply enclosed_total; intros
  | |- encloses (largest _ _) _ => apply enclosed_largest; intros
  | H : encloses ?x _ |- encloses ?x _ => exact H
  end.

Section Enclosed.
Variables (M : margin) (r : rounding) (w : row) (c : tally) (ks : list jkey).

Lemma in_up h : encloses (j_up intervals r h) (j_up reals r h). Proof. unfold j_up, j_u; enclose. Qed.
Lemma in_down h : encloses (j_down intervals r h) (j_down reals r h). Proof. unfold j_down, j_u; enclose. Qed.
Lemma in_g h : encloses (j_g intervals r h) (j_g reals r h). Proof. unfold j_g; enclose; apply in_up. Qed.
Lemma in_e k : encloses (j_e intervals M r w k) (j_e reals M r w k).
Proof. unfold j_e, j_floor, j_eta. destruct (Z.eqb _ _); enclose; apply in_g. Qed.
Lemma in_E : encloses (j_E intervals M r w ks) (j_E reals M r w ks).
Proof. unfold j_E; enclose; apply in_e. Qed.
Lemma in_c : encloses (j_c intervals ks) (j_c reals ks).
Proof. unfold j_c; enclose. Qed.
Lemma in_eps' : encloses (j_eps' intervals r) (j_eps' reals r).
Proof. unfold j_eps'; enclose. Qed.
Lemma in_omega k : encloses (j_omega intervals r k) (j_omega reals r k). Proof. unfold j_omega; enclose. Qed.
Lemma in_magnify : encloses (j_magnify intervals r c) (j_magnify reals r c).
Proof. unfold j_magnify; enclose; [apply in_up|apply in_down]. Qed.

Section At.
Variables (E ep lc o : intervals) (E' ep' lc' o' : reals).
Hypothesis E_in : encloses E E'.
Hypothesis ep_in : encloses ep ep'.
Hypothesis lc_in : encloses lc lc'.
Lemma in_Z k : encloses (j_Z intervals M r w E ep k) (j_Z reals M r w E' ep' k).
Proof. unfold j_Z, j_u, j_eta. enclose; simple apply in_e. Qed.
Lemma in_p k : encloses (j_p intervals lc k) (j_p reals lc' k). Proof. unfold j_p; enclose. Qed.
Lemma in_p_high k : encloses (j_p_high intervals M r w E ep lc k) (j_p_high reals M r w E' ep' lc' k).
Proof. unfold j_p_high; enclose; [apply in_p|apply in_Z]. Qed.
Lemma in_Omega : encloses (j_Omega intervals r c ks E lc) (j_Omega reals r c ks E' lc').
Proof. unfold j_Omega, j_eta. enclose; [apply in_omega|apply in_up]. Qed.
Lemma in_low : encloses (j_low intervals M r w c ks E ep lc) (j_low reals M r w c ks E' ep' lc').
Proof. unfold j_low; enclose; [apply in_p|apply in_Z|apply in_down|apply in_Omega]. Qed.
Lemma in_high : encloses (j_high intervals M r w c ks E ep lc) (j_high reals M r w c ks E' ep' lc').
Proof. unfold j_high; enclose; [apply in_p_high|apply in_up|apply in_Omega]. Qed.
Lemma in_output : encloses (j_output intervals ks lc) (j_output reals ks lc').
Proof. unfold j_output; enclose; apply in_p. Qed.
Hypothesis o_in : encloses o o'.
Lemma in_num : encloses (j_num intervals M r w c ks E ep lc o) (j_num reals M r w c ks E' ep' lc' o').
Proof. unfold j_num; enclose; first [simple apply in_p|simple apply in_p_high|simple apply in_Z|simple apply in_g]. Qed.
Lemma in_U : encloses (j_U intervals r c ks o) (j_U reals r c ks o').
Proof. unfold j_U, j_eta, j_vmax; cbv zeta; enclose; first [simple apply in_magnify|simple apply in_omega]. Qed.
End At.

(* Theorems: what Coq computes with intervals contains the bounds. *)
Theorem bound_computed : encloses (j_bound intervals M r w c ks) (j_bound reals M r w c ks).
Proof.
  assert (C := in_c). assert (O := in_output _ _ C). assert (T := in_E). assert (T' := in_eps').
  unfold j_bound, j_u; cbv zeta. enclose; [now apply in_num|now apply in_low|now apply in_U].
Qed.

Theorem lse_bound_computed : encloses (j_lse_bound intervals M r w c ks) (j_lse_bound reals M r w c ks).
Proof.
  assert (C := in_c). assert (T := in_E). assert (T' := in_eps').
  unfold j_lse_bound, j_u; cbv zeta. enclose; first [now simple apply in_high|now simple apply in_low].
Qed.
End Enclosed.
