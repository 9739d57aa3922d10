(* Flocq's floating-point numbers are such an arithmetic: precision prec, gradual underflow from 2^emin, any radix-2
   round to nearest. Exponents are not bounded above: that nothing overflows is hypothesis H9. *)
From Coq Require Import Reals ZArith Lra Lia.
From Flocq Require Import Core Relative Plus_error.
From FD Require Import Round.
Open Scope R_scope.

Section Flt.
Variables emin prec : Z.
Context {prec_positive : Prec_gt_0 prec}.
Variable tie : Z -> bool.
Hypothesis one_in_format : (emin + prec <= 1)%Z.

Notation format := (generic_format radix2 (FLT_exp emin prec)).
Definition fl := round radix2 (FLT_exp emin prec) (Znearest tie).

Definition flt_u := bpow radix2 (- prec).
Definition flt_eta := bpow radix2 (emin - 1).

Lemma half_bpow e : / 2 * bpow radix2 e = bpow radix2 (e - 1).
Proof. unfold Zminus; rewrite bpow_plus. change (bpow radix2 (- (1))) with (/ 2). apply Rmult_comm. Qed.

Lemma format_1 : format 1.
Proof.
  change 1 with (bpow radix2 0). apply generic_format_bpow. unfold FLT_exp.
  assert (P := prec_positive); unfold Prec_gt_0 in P. lia.
Qed.

(* Whatever the operation: u relative plus eta absolute. *)
Lemma fl_error x : Rabs (fl x - x) <= flt_u * Rabs x + flt_eta.
Proof.
  destruct (error_N_FLT radix2 emin prec prec_positive tie x) as (d & f & D & F & _ & E).
  unfold fl; rewrite E. rewrite half_bpow in D, F. replace (- prec + 1 - 1)%Z with (- prec)%Z in D by ring.
  replace (x * (1 + d) + f - x) with (d * x + f) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult.
  apply Rplus_le_compat; [apply Rmult_le_compat_r; [apply Rabs_pos|exact D]|exact F].
Qed.

(* The sum of two numbers of the format: a subnormal one is exact, so there is no absolute term. *)
Lemma fl_add_error x y : format x -> format y -> Rabs (fl (x + y) - (x + y)) <= flt_u * Rabs (x + y) + 0.
Proof.
  intros X Y. rewrite Rplus_0_r. unfold fl. assert (P := prec_positive); unfold Prec_gt_0 in P.
  destruct (Rle_dec (Rabs (x + y)) (bpow radix2 (prec + emin))) as [L|L].
  - rewrite round_generic; [|apply valid_rnd_N|apply FLT_format_plus_small; assumption].
    replace (x + y - (x + y)) with 0 by ring. rewrite Rabs_R0.
    apply Rmult_le_pos; [apply bpow_ge_0|apply Rabs_pos].
  - replace flt_u with (/ 2 * bpow radix2 (- prec + 1)).
    + apply relative_error_N_FLT; [exact P|]. apply Rlt_le, Rle_lt_trans with (2 := Rnot_le_lt _ _ L).
      apply bpow_le; lia.
    + rewrite half_bpow. unfold flt_u; f_equal; ring.
Qed.

#[global] Instance flt : arithmetic.
Proof.
  refine {| fmt := format; u := flt_u; eta := flt_eta; oadd := 0 |}; try lra.
  - split; [apply bpow_ge_0|]. assert (P := prec_positive); unfold Prec_gt_0 in P.
    change 1 with (bpow radix2 0). apply bpow_lt; lia.
  - apply bpow_ge_0.
Defined.

Lemma fl_rounds e x : Rabs (fl x - x) <= flt_u * Rabs x + e -> rounds e x (fl x).
Proof.
  intros E. split; [apply generic_format_round; auto with typeclass_instances| |exact E| | |].
  - intros F. apply round_generic; auto with typeclass_instances.
  - intros L. rewrite <- (round_0 radix2 (FLT_exp emin prec) (Znearest tie)).
    apply round_le; auto with typeclass_instances.
  - intros L. rewrite <- (round_0 radix2 (FLT_exp emin prec) (Znearest tie)).
    apply round_le; auto with typeclass_instances.
  - intros L. rewrite <- (round_generic radix2 (FLT_exp emin prec) (Znearest tie) 1 format_1).
    apply round_le; auto with typeclass_instances.
Qed.

(* Theorem: a rounded product, quotient or FMA, and a rounded sum, satisfy [rounds]. *)
Theorem operation_rounds x : rounds flt_eta x (fl x).
Proof. apply fl_rounds, fl_error. Qed.

Theorem addition_rounds x y : format x -> format y -> rounds 0 (x + y) (fl (x + y)).
Proof. intros X Y. now apply fl_rounds, fl_add_error. Qed.

Lemma fmt_fl x : format (fl x).
Proof. apply generic_format_round; auto with typeclass_instances. Qed.

End Flt.

(* The formats of the suite. u is 2^-24, 2^-8, 2^-11; eta is 2^-150, 2^-134, 2^-25. *)
#[global] Instance prec_24 : Prec_gt_0 24. Proof. reflexivity. Qed.
#[global] Instance prec_8 : Prec_gt_0 8. Proof. reflexivity. Qed.
#[global] Instance prec_11 : Prec_gt_0 11. Proof. reflexivity. Qed.

(* Ties to even. *)
Definition even (z : Z) := negb (Z.even z).
Definition binary32 : arithmetic := flt (-149) 24.
Definition bfloat16 : arithmetic := flt (-133) 8.
Definition binary16 : arithmetic := flt (-24) 11.

Example binary32_constants : @u binary32 = / 2 ^ 24 /\ @eta binary32 = / 2 ^ 150.
Proof. unfold u, eta; simpl. unfold flt_u, flt_eta; simpl. lra. Qed.
Example bfloat16_constants : @u bfloat16 = / 2 ^ 8 /\ @eta bfloat16 = / 2 ^ 134.
Proof. unfold u, eta; simpl. unfold flt_u, flt_eta; simpl. lra. Qed.
Example binary16_constants : @u binary16 = / 2 ^ 11 /\ @eta binary16 = / 2 ^ 25.
Proof. unfold u, eta; simpl. unfold flt_u, flt_eta; simpl. lra. Qed.
