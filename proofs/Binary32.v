(* The rungs in binary32, round to nearest even: the theorems with every hypothesis about rounding discharged by Flocq.
   What remains is the exponential, and that nothing overflows. *)
From Coq Require Import Reals ZArith Lra Lia List.
From Flocq Require Import Core.
From FD Require Import Sum Round Float Exp Algebra Quotient Tree Weights Bound Counts PassLine.
From FD Require Import Programs Online Split Rung05 Tiled Threads.
Import ListNotations.
Open Scope R_scope.

Definition fl32 := fl (-149) 24 even.

Lemma fl32_op x : @rounds binary32 (@eta binary32) x (fl32 x).
Proof. apply operation_rounds. lia. Qed.

Lemma fl32_add a b : @fmt binary32 a -> @fmt binary32 b -> @rounds binary32 0 (a + b) (fl32 (a + b)).
Proof. intros Fa Fb. apply addition_rounds; [lia|exact Fa|exact Fb]. Qed.

Lemma fl32_sub a b : @fmt binary32 a -> @fmt binary32 b -> @rounds binary32 0 (a - b) (fl32 (a - b)).
Proof. intros Fa Fb. apply addition_rounds; [lia|exact Fa|now apply generic_format_opp]. Qed.

(* H2 and H3 can be met: a correctly rounded exp meets them with eps = u and eta_e = eta. *)
#[global] Instance correctly_rounded : functions.
Proof.
  refine {| eps := @u binary32; eta_e := @eta binary32; eps_l := @u binary32 |}.
  - apply u_range.
  - apply eta_nonneg.
  - apply u_range.
Defined.

Theorem correctly_rounded_exp x : @exps binary32 correctly_rounded x (fl32 (exp x)).
Proof.
  assert (P := exp_pos x). assert (H := fl32_op (exp x)).
  assert (One : fl32 1 = 1) by (apply (exact _ _ _ (fl32_op 1)); apply (format_1 (-149) 24); lia).
  split.
  - exact (in_format _ _ _ H).
  - assert (E := error _ _ _ H). rewrite (Rabs_right (exp x)) in E by lra. exact E.
  - intros L. split; [apply (not_below_0 _ _ _ H); lra|].
    rewrite <- One. apply round_le; auto with typeclass_instances.
    rewrite <- exp_0. destruct (Req_dec x 0) as [->|]; [lra|]. left; apply exp_increasing; lra.
  - intros ->. rewrite exp_0. exact One.
Qed.

(* Theorems: an output stored in 16 bits, r being within b of O before: u_o (|O| + b) and half a subnormal more. *)
Lemma stored_error uo eo b r x O : 0 <= uo -> Rabs (r - O) <= b -> Rabs (x - r) <= uo * Rabs r + eo ->
  Rabs (x - O) <= b + uo * (Rabs O + b) + eo.
Proof.
  intros P D E. assert (R : Rabs r <= Rabs O + b).
  { replace r with ((r - O) + O) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra. }
  assert (T := Rmult_le_compat_l _ _ _ P R). replace (x - O) with ((x - r) + (r - O)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

Theorem output_bfloat16 b r O : Rabs (r - O) <= b ->
  Rabs (fl (-133) 8 even r - O) <= b + / 2 ^ 8 * (Rabs O + b) + / 2 ^ 134.
Proof.
  intros D. destruct bfloat16_constants as [<- <-].
  exact (stored_error (@u bfloat16) (@eta bfloat16) b r _ O (proj1 (@u_range bfloat16)) D (fl_error (-133) 8 even r)).
Qed.

Theorem output_binary16 b r O : Rabs (r - O) <= b ->
  Rabs (fl (-24) 11 even r - O) <= b + / 2 ^ 11 * (Rabs O + b) + / 2 ^ 25.
Proof.
  intros D. destruct binary16_constants as [<- <-].
  exact (stored_error (@u binary16) (@eta binary16) b r _ O (proj1 (@u_range binary16)) D (fl_error (-24) 11 even r)).
Qed.

(* Theorems: the rungs. ex is any exponential that keeps its promises, such as the host's expf, measured. *)
Section Rungs.
Context {B : functions}.
Variable ex : R -> R.
Hypothesis ex_ok : forall x, @fmt binary32 x -> x <= 0 -> @exps binary32 B x (ex x).

Definition rung_02_binary32 := @rung_02 binary32 B fl32 ex fl32_op fl32_add fl32_sub ex_ok.
Definition rung_03_binary32 := @rung_03 binary32 B fl32 ex fl32_op fl32_add fl32_sub ex_ok.
Definition rung_04_binary32 := @rung_04 binary32 B fl32 ex fl32_op fl32_add fl32_sub ex_ok.
Definition rung_05_binary32 := @rung_05 binary32 B fl32 ex fl32_op fl32_add fl32_sub ex_ok.
Definition rung_06_binary32 := @rung_06 binary32 B fl32 ex fl32_op fl32_add fl32_sub ex_ok.
End Rungs.
