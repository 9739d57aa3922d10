(* Formulas that are evaluated twice: over the real numbers, where theorems speak of them, and over intervals, where Coq
   computes them. [enclosed] relations say that the second contains the first. *)
From Coq Require Import Reals ZArith List.
From Flocq Require Import Core.
From Interval Require Import Xreal Basic Sig Interval Float_full Specific_bigint Specific_ops.
Import ListNotations.

(* What a formula may use. Inputs are dyadic: m 2^e. *)
Definition dyad := (Z * Z)%type.
Record numbers := Numbers {
  num :> Type;
  dyadic : dyad -> num;
  add : num -> num -> num; sub : num -> num -> num; mul : num -> num -> num; quo : num -> num -> num;
  size : num -> num; expo : num -> num; loga : num -> num; larger : num -> num -> num;
}.
Arguments dyadic {_}. Arguments add {_}. Arguments sub {_}. Arguments mul {_}. Arguments quo {_}.
Arguments size {_}. Arguments expo {_}. Arguments loga {_}. Arguments larger {_}.

Definition reals := Numbers R (fun x => (IZR (fst x) * bpow radix2 (snd x))%R) Rplus Rminus Rmult Rdiv Rabs exp ln Rmax.

Module F := SpecificFloat BigIntRadix2.
Module I := FloatIntervalFull F.
Definition bits := F.PtoP 80.

Definition scaled (x : dyad) := I.mul bits (I.fromZ bits (fst x)) (I.power_int bits (I.fromZ bits 2) (snd x)).
Definition join_up x y :=
  I.mul bits (scaled (1, -1)%Z) (I.add bits (I.add bits x y) (I.abs (I.sub bits x y))).
Definition intervals := Numbers I.type scaled (I.add bits) (I.sub bits) (I.mul bits) (I.div bits)
  I.abs (I.exp bits) (I.ln bits) join_up.

Definition encloses (i : intervals) (r : reals) := contains (I.convert i) (Xreal r).

Lemma nan_all c r : contains c Xnan -> contains c (Xreal r).
Proof. now destruct c as [|l u]. Qed.

Lemma enclosed_add i j r s : encloses i r -> encloses j s -> encloses (add i j) (add r s).
Proof. intros H K. exact (I.add_correct bits i j _ _ H K). Qed.
Lemma enclosed_sub i j r s : encloses i r -> encloses j s -> encloses (sub i j) (sub r s).
Proof. intros H K. exact (I.sub_correct bits i j _ _ H K). Qed.
Lemma enclosed_mul i j r s : encloses i r -> encloses j s -> encloses (mul i j) (mul r s).
Proof. intros H K. exact (I.mul_correct bits i j _ _ H K). Qed.
Lemma enclosed_quo i j r s : encloses i r -> encloses j s -> encloses (quo i j) (quo r s).
Proof.
  intros H K. assert (T := I.div_correct bits i j _ _ H K). unfold Xdiv, Xdiv' in T.
  destruct (is_zero s); [now apply nan_all|exact T].
Qed.
Lemma enclosed_size i r : encloses i r -> encloses (size i) (size r).
Proof. intros H. exact (I.abs_correct i _ H). Qed.
Lemma enclosed_expo i r : encloses i r -> encloses (expo i) (expo r).
Proof. intros H. exact (I.exp_correct bits i _ H). Qed.
Lemma enclosed_loga i r : encloses i r -> encloses (loga i) (loga r).
Proof.
  intros H. assert (T := I.ln_correct bits i _ H). unfold Xln, Xln' in T.
  destruct (is_positive r); [exact T|now apply nan_all].
Qed.
Lemma enclosed_dyadic x : encloses (dyadic x) (dyadic x).
Proof.
  apply (enclosed_mul (I.fromZ bits (fst x)) _ (IZR (fst x)) (bpow radix2 (snd x))); [apply I.fromZ_correct|].
  assert (T := I.power_int_correct bits (snd x) _ _ (I.fromZ_correct bits 2)). unfold encloses. cbv beta in T.
  replace (Xpower_int (Xreal 2) (snd x)) with (Xreal (bpow radix2 (snd x))) in T; [exact T|].
  rewrite bpow_powerRZ. unfold Xpower_int, Xpower_int', powerRZ, Xbind. simpl (IZR radix2).
  destruct (snd x) as [|p|p]; try reflexivity. now rewrite (is_zero_false 2) by discrR.
Qed.
Lemma enclosed_larger i j r s : encloses i r -> encloses j s -> encloses (larger i j) (larger r s).
Proof.
  intros H K. replace (larger r s) with (mul (n := reals) (dyadic (1, -1)%Z) (add (add r s) (size (sub r s)))).
  - apply enclosed_mul; [apply enclosed_dyadic|].
    apply enclosed_add; [now apply enclosed_add|]. now apply enclosed_size, enclosed_sub.
  - simpl. rewrite Rmult_1_l. unfold Rmax, Rabs. destruct (Rle_dec r s), (Rcase_abs (r - s)); Lra.lra.
Qed.

(* Sums, powers and maxima of lists. *)
Section Lists.
Variable N : numbers.
Definition whole n : N := dyadic (Z.of_nat n, 0%Z).
Fixpoint power (x : N) n : N := match n with O => whole 1 | S n => mul x (power x n) end.
Definition total {A} (f : A -> N) xs : N := fold_right (fun x s => add (f x) s) (whole 0) xs.
Definition largest {A} (f : A -> N) xs : N := fold_right (fun x s => larger (f x) s) (whole 0) xs.
End Lists.
Arguments whole {_}. Arguments power {_}. Arguments total {_ _}. Arguments largest {_ _}.

Lemma enclosed_whole n : encloses (whole n) (whole n).
Proof. apply enclosed_dyadic. Qed.
Lemma enclosed_power i r n : encloses i r -> encloses (power i n) (power r n).
Proof. intros H. induction n; [apply enclosed_whole|now apply enclosed_mul]. Qed.
Lemma enclosed_total {A} (f : A -> intervals) (g : A -> reals) xs :
  (forall x, encloses (f x) (g x)) -> encloses (total f xs) (total g xs).
Proof. intros H. induction xs; [apply enclosed_whole|now apply enclosed_add]. Qed.
Lemma enclosed_largest {A} (f : A -> intervals) (g : A -> reals) xs :
  (forall x, encloses (f x) (g x)) -> encloses (largest f xs) (largest g xs).
Proof. intros H. induction xs; [apply enclosed_whole|now apply enclosed_larger]. Qed.

(* An enclosure as two dyadic numbers of 53 bits; nothing where it is not bounded. *)
Definition end_of (f : F.type) : option dyad := match F.toF f with
  | Basic.Fnan => None | Basic.Fzero => Some (0, 0)%Z | Basic.Float s m e => Some (Zaux.cond_Zopp s (Zpos m), e) end.
Definition narrow (i : intervals) := I.add (F.PtoP 53) i I.zero.
Definition ends (i : intervals) : option (dyad * dyad) :=
  match end_of (I.lower (narrow i)), end_of (I.upper (narrow i)) with Some l, Some h => Some (l, h) | _, _ => None end.

Lemma end_value f x : end_of f = Some x -> F.toX f = Xreal (@dyadic reals x).
Proof.
  unfold end_of, F.toX. destruct (F.toF f) as [| |s m e]; intros E; inversion E; [cbn; now rewrite Rmult_0_l|].
  cbn [dyadic reals fst snd]. unfold FtoX. f_equal. rewrite FtoR_split. unfold Defs.F2R. now destruct s.
Qed.

(* Theorem: the ends are ends. *)
Theorem ends_enclose i r l h : ends i = Some (l, h) -> encloses i r -> (@dyadic reals l <= r <= @dyadic reals h)%R.
Proof.
  unfold ends. intros E H.
  assert (Z0 : contains (I.convert I.zero) (Xreal 0)) by (rewrite I.zero_correct; cbn; Lra.lra).
  assert (T := I.add_correct (F.PtoP 53) i I.zero _ _ H Z0).
  fold (narrow i) in T. cbn [Xadd] in T. rewrite Rplus_0_r in T.
  destruct (narrow i) as [|a b]; [discriminate|]. cbn [I.lower I.upper] in E.
  destruct (end_of a) as [x|] eqn:Ea, (end_of b) as [y|] eqn:Eb; try discriminate. inversion E; subst x y.
  cbn [I.convert] in T. destruct (_ && _)%bool.
  - cbn [contains] in T. rewrite (end_value _ _ Ea), (end_value _ _ Eb) in T. exact T.
  - cbn [contains] in T. destruct T. Lra.lra.
Qed.
