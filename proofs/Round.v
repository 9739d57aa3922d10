(* What is assumed of one floating-point operation, and how the factors (1 + delta) of many of them accumulate.
   Nothing here knows a format: Float.v shows that Flocq's binary32, bfloat16 and binary16 satisfy it. *)
From Coq Require Import Reals Lra Lia.
Open Scope R_scope.

(* H1 of README.md. [fmt] holds of the numbers of the format. A product or quotient errs by u relative and eta absolute.
   An addition to o errs by u relative and [oadd] absolute: 0 in IEEE arithmetic, where a subnormal sum is exact; eta
   where subnormal results are flushed. Additions to l err by u alone either way: its terms are >= 0, none cancel. *)
Class arithmetic := {
  fmt : R -> Prop;
  u : R;
  eta : R;
  oadd : R;
  u_range : 0 <= u < 1;
  eta_nonneg : 0 <= eta;
  oadd_nonneg : 0 <= oadd;
}.

(* r is the rounded x: a number of the format, exact where x is one, within the error, and not across 0 or 1, as for
   every monotone rounding. Which neighbour it is stays open, so the theorems hold for faithful roundings too. *)
Record rounds `{arithmetic} (e x r : R) : Prop := {
  in_format : fmt r;
  exact : fmt x -> r = x;
  error : Rabs (r - x) <= u * Rabs x + e;
  not_below_0 : 0 <= x -> 0 <= r;
  not_above_0 : x <= 0 -> r <= 0;
  not_below_1 : 1 <= x -> 1 <= r;
}.

Lemma abs_le x b : Rabs x <= b <-> - b <= x <= b.
Proof. unfold Rabs; destruct (Rcase_abs x); lra. Qed.

(* A relative and an absolute error, taken apart. *)
Lemma split_error a e x r : 0 <= a -> 0 <= e -> Rabs (r - x) <= a * Rabs x + e ->
  exists d f, Rabs d <= a /\ Rabs f <= e /\ r = x * (1 + d) + f.
Proof.
  intros P E B. destruct (Req_dec x 0) as [->|N].
  { exists 0, (r - 0). rewrite Rabs_R0 in B |- *. repeat split; lra. }
  destruct (Rle_dec (Rabs (r - x)) (a * Rabs x)) as [L|L].
  { exists ((r - x) / x), 0. rewrite Rabs_R0. repeat split; [|lra|field; exact N].
    unfold Rdiv; rewrite Rabs_mult, Rabs_inv. apply (Rmult_le_reg_r (Rabs x)); [now apply Rabs_pos_lt|].
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r by now apply Rabs_no_R0. exact L. }
  assert (Q : exists s, Rabs s <= a /\ Rabs (r - x - x * s) <= e).
  { unfold Rabs in *. destruct (Rcase_abs x), (Rcase_abs (r - x));
      [exists a|exists (-a)|exists (-a)|exists a]; split; destruct (Rcase_abs _); nra. }
  destruct Q as (d & D1 & D2). exists d, (r - x - x * d); repeat split; [exact D1|exact D2|ring].
Qed.

Section Round.
Context {A : arithmetic}.

Lemma rounds_zero e r : rounds e 0 r -> r = 0.
Proof. intros H. apply Rle_antisym; [apply (not_above_0 _ _ _ H)|apply (not_below_0 _ _ _ H)]; lra. Qed.

(* The other reading of the error: r = x (1 + d) + f. *)
Lemma rounds_split e x r : 0 <= e -> rounds e x r -> exists d f, Rabs d <= u /\ Rabs f <= e /\ r = x * (1 + d) + f.
Proof. intros E H. apply split_error; [apply u_range|exact E|apply (error _ _ _ H)]. Qed.

(* ---- Factors --------------------------------------------------------------------------------------------------- *)

(* g(h) of README.md: what h roundings can do to one term. *)
Definition g (h : nat) := (1 + u) ^ h - 1.

Lemma up_ge_1 h : 1 <= (1 + u) ^ h.
Proof. apply pow_R1_Rle. assert (U := u_range); lra. Qed.

Lemma up_mono h k : (h <= k)%nat -> (1 + u) ^ h <= (1 + u) ^ k.
Proof. intros L. apply Rle_pow; [assert (U := u_range); lra|exact L]. Qed.

Lemma down_range h : 0 < (1 - u) ^ h <= 1.
Proof.
  assert (U := u_range). split; [apply pow_lt; lra|].
  induction h as [|h IH]; simpl; [lra|]. assert (P : 0 < (1 - u) ^ h) by (apply pow_lt; lra). nra.
Qed.

Lemma down_mono h k : (h <= k)%nat -> (1 - u) ^ k <= (1 - u) ^ h.
Proof.
  assert (U := u_range). induction 1 as [|k _ IH]; simpl; [lra|]. assert (P := down_range k). nra.
Qed.

Lemma g_0 : g 0 = 0.
Proof. unfold g; simpl; ring. Qed.

Lemma g_S h : g (S h) = (1 + u) * g h + u.
Proof. unfold g; simpl; ring. Qed.

Lemma g_nonneg h : 0 <= g h.
Proof. unfold g. assert (P := up_ge_1 h). lra. Qed.

Lemma g_mono h k : (h <= k)%nat -> g h <= g k.
Proof. intros L. unfold g. assert (P := up_mono h k L). lra. Qed.

(* Losing is never worse than gaining. *)
Lemma down_g h : 1 - g h <= (1 - u) ^ h.
Proof.
  assert (U := u_range). unfold g. induction h as [|h IH]; [simpl; lra|].
  simpl. assert (P := up_ge_1 h). assert (Q := down_range h). nra.
Qed.

(* g(h) <= h u / (1 - h u), the textbook's gamma, for those who want a number. *)
Lemma g_gamma h : INR h * u < 1 -> g h <= INR h * u / (1 - INR h * u).
Proof.
  intros L. assert (U := u_range).
  assert (K : (1 + u) ^ h * (1 - INR h * u) <= 1).
  { induction h as [|h IH]; [simpl; lra|]. rewrite S_INR in L |- *.
    assert (I := pos_INR h). assert (P := up_ge_1 h). simpl.
    assert (IH' : (1 + u) ^ h * (1 - INR h * u) <= 1) by (apply IH; nra).
    assert (E : (1 + u) * (1 - (INR h + 1) * u) <= 1 - INR h * u) by nra.
    replace ((1 + u) * (1 + u) ^ h * (1 - (INR h + 1) * u))
      with ((1 + u) ^ h * ((1 + u) * (1 - (INR h + 1) * u))) by ring. nra. }
  apply (Rmult_le_reg_r (1 - INR h * u)); [lra|].
  unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. unfold g. nra.
Qed.

(* One more rounded operation on a number whose error is known: error B of size G becomes (1 + u) B + u G + e. *)
Lemma rounds_error e x r y B G :
  rounds e x r -> Rabs (x - y) <= B -> Rabs y <= G -> Rabs (r - y) <= (1 + u) * B + u * G + e.
Proof.
  intros H D S. assert (E := error _ _ _ H). assert (U := u_range).
  replace (r - y) with ((r - x) + (x - y)) by ring.
  assert (X : Rabs x <= B + G).
  { replace x with ((x - y) + y) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra. }
  eapply Rle_trans; [apply Rabs_triang|]. nra.
Qed.

(* From below, for numbers that are not negative. *)
Lemma rounds_lower e x r y : rounds e x r -> 0 <= x -> y <= x -> (1 - u) * y - e <= r.
Proof.
  intros H P L. assert (E := error _ _ _ H). assert (U := u_range).
  rewrite (Rabs_right x) in E by lra. apply abs_le in E. nra.
Qed.

End Round.
