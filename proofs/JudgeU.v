(* Section 6 of README.md: the U that the page states, and the judge computes, covers the (1 + u) readme_U + eta of the
   theorems, for levels without normalised parts and for rung 05; so does its Omega. Its factor 2 and M^2 are slack. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient PassLine Grow Rung05.
Import ListNotations.
Open Scope R_scope.

Section JudgeU.
Context {A : arithmetic} {B : functions}.
Hypothesis ieee : oadd = 0.

(* h and h': hN and hD at their largest; P normalised parts on nl levels; ab = sum of omega_j (|v_j| + |O|). *)
Definition magnify h h' := (1 + u) ^ h / (1 - u) ^ h'.
Definition page_U h h' ab n X P nl vm o0 := let M := magnify h h' in
  M ^ 2 * (ab + 2 * eta * (n + X * (1 + o0) + 2 * P * vm * M)) + eta * M ^ 2 * (1 + nl).

Lemma magnify_ge h h' : (1 + u) ^ h <= magnify h h'.
Proof.
  assert (D := down_range h'). assert (G := up_ge_1 h). unfold magnify, Rdiv.
  rewrite <- (Rmult_1_r ((1 + u) ^ h)) at 1. apply Rmult_le_compat_l; [lra|].
  rewrite <- Rinv_1 at 1. apply Rinv_le_contravar; lra.
Qed.

Lemma magnify_square h h' k : (k <= 2 * h)%nat -> (1 + u) ^ k <= magnify h h' ^ 2.
Proof.
  intros L. assert (M := magnify_ge h h'). assert (G := up_ge_1 h).
  apply Rle_trans with ((1 + u) ^ (2 * h)); [now apply up_mono|].
  rewrite Nat.mul_comm, pow_mult. apply pow_incr. lra.
Qed.

(* Theorem: levels that add, rescale, or keep a running maximum. *)
Theorem page_U_covers h h' ab n X vm o0 : (1 <= h)%nat -> 0 <= ab -> 0 <= n -> 0 <= X -> 0 <= o0 ->
  (1 + u) * ((1 + u) ^ h * (ab + (eta * (n + X + 0) + oadd * (n - 1)) + eta * X * o0)) + eta
    <= page_U h h' ab n X 0 0 vm o0.
Proof.
  intros L Pa Pn PX Po. rewrite ieee. unfold page_U. cbv zeta. assert (P := eta_nonneg).
  assert (K := magnify_square h h' (S h) ltac:(lia)). assert (K0 := magnify_square h h' 0 ltac:(lia)).
  simpl ((1 + u) ^ S h) in K. simpl ((1 + u) ^ 0) in K0. set (M2 := magnify h h' ^ 2) in *.
  assert (T : 0 <= ab + eta * (n + X * (1 + o0))).
  { assert (0 <= X * (1 + o0)) by nra. assert (0 <= eta * (n + X * (1 + o0))) by (apply Rmult_le_pos; lra). lra. }
  assert (T1 := Rmult_le_compat_r _ _ _ T K). assert (T2 := Rmult_le_compat_l _ _ _ P K0).
  assert (T3 : 0 <= M2 * (eta * (n + X * (1 + o0)))).
  { apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [exact P|]. nra. }
  nra.
Qed.

(* Theorem: rung 05, C keys a split at most, K splits; K (C + 1) eta is far below 1. *)
Theorem page_U_covers_05 C K ab n vm o0 : (1 <= C)%nat -> (1 <= K)%nat -> 0 <= ab -> 0 <= n -> 0 <= vm -> 0 <= o0 ->
  INR K * (INR C + 1) * eta <= 1 ->
  (1 + u) * ((1 + u) ^ (C + K + 2) * (ab + (eta * (n + INR K + (INR K * part_size C vm + (1 + u) ^ (C - 1) * n))
    + oadd * (n - 1)) + eta * INR K * o0)) + eta
    <= page_U (C + K + 2) (C + K - 1) ab n (INR K) (INR K) 1 vm o0.
Proof.
  intros LC LK Pa Pn Pv Po Small. unfold page_U, part_size. rewrite ieee. cbv zeta. assert (P := eta_nonneg).
  set (h := (C + K + 2)%nat). set (h' := (C + K - 1)%nat). assert (U := u_range).
  assert (M1 := magnify_ge h h'). set (M := magnify h h') in *. assert (Gh := up_ge_1 h).
  assert (K1 := magnify_square h h' (S h) ltac:(unfold h; lia)).
  assert (K2 := magnify_square h h' (S h + (C - 1)) ltac:(unfold h; lia)).
  assert (K3 := magnify_square h h' (S h + S C) ltac:(unfold h; lia)).
  assert (K0 := magnify_square h h' 0 ltac:(lia)). rewrite pow_O in K0.
  rewrite pow_add in K2, K3. fold M in K0, K1, K2, K3.
  (* the size of a part, without underflow, is at most M vm, and its own rounding *)
  assert (Q : (1 + u) ^ C / (1 - u) ^ (C - 1) <= M).
  { unfold M, magnify. assert (D := down_range h'). apply Rmult_le_compat.
    - assert (G := up_ge_1 C); lra.
    - left; apply Rinv_0_lt_compat, down_range.
    - apply up_mono; unfold h; lia.
    - apply Rinv_le_contravar; [lra|apply down_mono; unfold h'; lia]. }
  assert (K4 := magnify_square h h' (S (S h)) ltac:(unfold h; lia)). fold M in K4.
  assert (IK := pos_INR K). assert (IC := pos_INR C).
  change ((1 + u) ^ S h) with ((1 + u) * (1 + u) ^ h) in *. change ((1 + u) ^ S C) with ((1 + u) * (1 + u) ^ C) in *.
  change ((1 + u) ^ S (S h)) with ((1 + u) * ((1 + u) * (1 + u) ^ h)) in K4.
  set (w := (1 + u) * (1 + u) ^ h) in *. set (M2 := M ^ 2) in *. assert (W1 : 1 <= w) by (unfold w; nra).
  (* term by term *)
  assert (T1 : w * (ab + eta * (n + INR K * (1 + o0))) <= M2 * (ab + eta * (n + INR K * (1 + o0)))).
  { apply Rmult_le_compat_r; [|exact K1]. assert (0 <= INR K * (1 + o0)) by nra.
    assert (0 <= eta * (n + INR K * (1 + o0))) by (apply Rmult_le_pos; lra). lra. }
  assert (T2 : w * (1 + u) ^ (C - 1) * (eta * n) <= M2 * (eta * n))
    by (apply Rmult_le_compat_r; [now apply Rmult_le_pos|exact K2]).
  assert (EK : 0 <= eta * INR K) by now apply Rmult_le_pos.
  assert (T3 : w * ((1 + u) * (vm * (1 + u) ^ C / (1 - u) ^ (C - 1))) * (eta * INR K) <= M2 * (vm * M) * (eta * INR K)).
  { apply Rmult_le_compat_r; [exact EK|]. unfold Rdiv. rewrite Rmult_assoc. fold ((1 + u) ^ C / (1 - u) ^ (C - 1)).
    replace (w * ((1 + u) * (vm * ((1 + u) ^ C / (1 - u) ^ (C - 1)))))
      with ((1 + u) * w * (vm * ((1 + u) ^ C / (1 - u) ^ (C - 1)))) by ring.
    apply Rmult_le_compat; [nra| |exact K4|now apply Rmult_le_compat_l].
    apply Rmult_le_pos; [exact Pv|]. apply Rmult_le_pos; [assert (G := up_ge_1 C); lra|].
    left; apply Rinv_0_lt_compat, down_range. }
  assert (T4 : w * ((1 + u) * (1 + u) ^ C * (eta * INR C) + eta) * (eta * INR K) <= M2 * eta).
  { assert (Gc : 1 <= (1 + u) * (1 + u) ^ C) by (assert (G := up_ge_1 (S C)); exact G).
    apply Rle_trans with (w * ((1 + u) * (1 + u) ^ C) * (INR K * (INR C + 1) * eta) * eta).
    - replace (w * ((1 + u) * (1 + u) ^ C * (eta * INR C) + eta) * (eta * INR K))
        with (w * ((1 + u) * (1 + u) ^ C * INR C + 1) * (INR K * (eta * eta))) by ring.
      replace (w * ((1 + u) * (1 + u) ^ C) * (INR K * (INR C + 1) * eta) * eta)
        with (w * ((1 + u) * (1 + u) ^ C * (INR C + 1)) * (INR K * (eta * eta))) by ring.
      apply Rmult_le_compat_r; [apply Rmult_le_pos; [exact IK|nra]|]. apply Rmult_le_compat_l; [lra|]. nra.
    - apply Rmult_le_compat_r; [exact P|]. rewrite <- (Rmult_1_r M2).
      apply Rmult_le_compat; [nra| |exact K3|exact Small].
      apply Rmult_le_pos; [apply Rmult_le_pos; lra|exact P]. }
  assert (T5 : 0 <= M2 * (eta * INR K * (1 + o0))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
  assert (T6 : 0 <= M2 * (vm * M) * (eta * INR K)).
  { apply Rmult_le_pos; [|exact EK]. apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; lra. }
  assert (T7 := Rmult_le_compat_l _ _ _ P K0). rewrite <- Rmult_assoc. fold w. unfold Rdiv in *. lra.
Qed.

(* Theorem: the page's Omega. S is the sum of the omega_j. *)
Theorem page_Omega_covers h' S X : 0 <= S -> 0 <= X ->
  S + (1 + u) ^ h' * (eta * X) <= (S + 2 * X * eta) * (1 + u) ^ h'.
Proof.
  intros PS PX. assert (G := up_ge_1 h'). assert (P := Rmult_le_pos _ _ eta_nonneg PX).
  assert (T := Rmult_le_compat_l _ _ _ PS G). assert (Q := Rmult_le_pos _ _ P (Rle_trans _ _ _ Rle_0_1 G)). lra.
Qed.

End JudgeU.
