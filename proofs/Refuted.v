(* Statements that look right and are not, each with the smallest example known. *)
From Coq Require Import Reals ZArith Lra Lia List.
From Flocq Require Import Core.
From Interval Require Import Tactic.
From FD Require Import Sum Round Float Exp Algebra Quotient Tree Weights Bound Counts PassLine Programs Binary32.
From FD Require Import Coarse Numbers.
Import ListNotations.
Open Scope R_scope.

(* "lse is off by at most the mean of the weights' errors, sum p Z." Jensen's inequality points the other way: two equal
   keys, one weight right and one too large by e^2. *)
Example mean_of_Z_is_no_bound : let p := / 2 in p * 0 + p * 2 < ln (p * exp 0 + p * exp 2).
Proof. cbv zeta. rewrite exp_0. interval. Qed.

(* "Without underflow's terms, (o) still holds in binary32." Two keys, logits 0 and -104, values 0 and 1: the second
   weight is below half the least subnormal, the output is 0, and the error is the whole of |O|. *)
Definition far := [Input (Key 0 0) 0 0; Input (Key (-104) 1) (-104) 0].
Definition cr_exp x := fl32 (exp x).

Lemma far_weight : cr_exp (-104) = 0.
Proof.
  unfold cr_exp, fl32, fl. apply (round_N_small_pos radix2 (FLT_exp (-149) 24) even _ (-150)).
  - simpl. split; interval.
  - reflexivity.
Qed.

Lemma fl32_fixed x : @fmt binary32 x -> fl32 x = x.
Proof. apply (exact _ _ _ (fl32_op x)). Qed.

Lemma far_output : let lo := attend fl32 cr_exp 0 far in fl32 (snd lo / fst lo) = 0.
Proof.
  assert (F0 : fl32 0 = 0) by (apply fl32_fixed, generic_format_0).
  assert (F1 : fl32 1 = 1) by (apply fl32_fixed; apply (format_1 (-149) 24); lia).
  assert (Fm : fl32 (-104) = -104).
  { apply fl32_fixed. apply generic_format_FLT. exists (Float radix2 (-104) 0); unfold F2R; simpl; [ring|lia|lia]. }
  assert (W0 : weight fl32 cr_exp 0 (Input (Key 0 0) 0 0) = 1)
    by (unfold weight, cr_exp; cbn [shat]; now rewrite Rminus_0_r, F0, exp_0).
  assert (W1 : weight fl32 cr_exp 0 (Input (Key (-104) 1) (-104) 0) = 0)
    by (unfold weight; cbn [shat]; now rewrite Rminus_0_r, Fm, far_weight).
  unfold attend, far, add_key; cbn [fold_left fst snd]. rewrite W0, W1; cbn [ikey value]. cbv zeta; cbn [fst snd].
  repeat first [rewrite Rmult_0_l|rewrite Rmult_0_r|rewrite Rplus_0_l|rewrite Rplus_0_r|rewrite F0|rewrite F1].
  unfold Rdiv; now rewrite Rmult_0_l.
Qed.

(* README.md's terms for these keys: one exponential each, one addition, exact logits. *)
Definition far_terms := @readme_terms binary32 correctly_rounded 0 0 1 0 (map (fun x => Datum (ikey x) (serr x) 1) far).
Notation far_O := (attention (map ikey far)).

Example bare_formula_is_false : let lo := attend fl32 cr_exp 0 far in
  (1 + @u binary32) * (@Fnum binary32 far_terms / @Fden binary32 far_terms) + @u binary32 * Rabs far_O
    < Rabs (fl32 (snd lo / fst lo) - far_O).
Proof.
  cbv zeta. rewrite far_output.
  assert (Ne : far_terms <> []) by discriminate.
  assert (K : map term_key far_terms = map ikey far) by reflexivity.
  assert (E : eps' = - ln (1 - / 2 ^ 24))
    by (unfold eps'; cbn [eps correctly_rounded]; now rewrite (proj1 binary32_constants)).
  assert (Z0 : 0 <= 1 / 100000) by lra.
  assert (Zl : forall x, In x far_terms -> Z x <= 1 / 100000).
  { intros x [<-|[<-|[]]]; cbn [Z dkey de dR map far datum_of serr ikey logit]; rewrite E, (proj1 binary32_constants);
      simpl INR; interval. }
  assert (Hn : forall x, In x far_terms -> (hN x <= 2)%nat) by (intros x [<-|[<-|[]]]; cbn; lia).
  assert (Hd : forall x, In x far_terms -> (hD x <= 1)%nat) by (intros x [<-|[<-|[]]]; cbn; lia).
  assert (D : 0 < exp (- (1 / 100000)) * (1 - @u binary32) ^ 1) by (rewrite (proj1 binary32_constants); interval).
  assert (T := @coarse_F binary32 far_terms Ne (1 / 100000) 2 1 Z0 Zl Hn Hd 0 0 (Rle_refl 0) D).
  rewrite Rminus_0_r in T.
  assert (G : @gamma binary32 (1 / 100000) 2 1 0 <= / 1000) 
    by (fold (gamma32 (1 / 100000) 2 1 0); rewrite gamma32_formula; interval).
  assert (Pm : 0 < mass (map ikey far)) by (apply mass_pos; discriminate).
  assert (O1 : far_O = exp (-104) / mass (map ikey far)).
  { unfold attention, moment; cbn. unfold Rdiv. f_equal. ring. }
  assert (Po : 0 < far_O) by (rewrite O1; apply Rdiv_lt_0_compat; [apply exp_pos|exact Pm]).
  assert (Ga : gauge far_terms = far_O).
  { rewrite O1. unfold gauge, p. rewrite K. unfold far_terms, readme_terms, far, s, v; cbn [map sum fold_right].
    cbn [term_key dkey ikey logit value]. rewrite Rabs_R0, Rabs_R1. unfold Rdiv. ring. }
  rewrite Ga in T. rewrite Rabs_minus_sym, Rminus_0_r, (Rabs_right far_O) by lra.
  rewrite (proj1 binary32_constants). nra.
Qed.
