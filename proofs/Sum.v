(* Finite sums over lists of records. No indices and no big operators: a sum is a fold. *)
From Coq Require Import Reals Lra List Permutation Morphisms.
Import ListNotations.
Open Scope R_scope.

Section Sum.
Context {A : Type}.
Implicit Types (f g : A -> R) (xs ys : list A).

Definition sum f xs := fold_right (fun x s => f x + s) 0 xs.

Lemma sum_app f xs ys : sum f (xs ++ ys) = sum f xs + sum f ys.
Proof. induction xs as [|x xs IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma sum_plus f g xs : sum (fun x => f x + g x) xs = sum f xs + sum g xs.
Proof. induction xs as [|x xs IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma sum_scal c f xs : sum (fun x => c * f x) xs = c * sum f xs.
Proof. induction xs as [|x xs IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma sum_ext f g xs : (forall x, In x xs -> f x = g x) -> sum f xs = sum g xs.
Proof.
  induction xs as [|x xs IH]; simpl; intros H; [reflexivity|].
  rewrite (H x), IH; auto.
Qed.

Lemma sum_le f g xs : (forall x, In x xs -> f x <= g x) -> sum f xs <= sum g xs.
Proof.
  induction xs as [|x xs IH]; simpl; intros H; [lra|].
  apply Rplus_le_compat; auto.
Qed.

Lemma sum_const c xs : sum (fun _ => c) xs = INR (length xs) * c.
Proof.
  induction xs as [|x xs IH]; [simpl; ring|].
  cbn [sum fold_right length]. fold (sum (fun _ => c) xs). rewrite S_INR, IH. ring.
Qed.

Lemma sum_nonneg f xs : (forall x, In x xs -> 0 <= f x) -> 0 <= sum f xs.
Proof.
  intros H. replace 0 with (sum (fun _ => 0) xs) by (rewrite sum_const; ring).
  apply sum_le; exact H.
Qed.

Lemma sum_pos f xs : xs <> [] -> (forall x, In x xs -> 0 < f x) -> 0 < sum f xs.
Proof.
  destruct xs as [|x xs]; intros N H; [congruence|]. simpl.
  apply Rplus_lt_le_0_compat; [apply H; now left|].
  apply sum_nonneg; intros y I; left; apply H; now right.
Qed.

Lemma sum_ge_term f xs x : (forall y, In y xs -> 0 <= f y) -> In x xs -> f x <= sum f xs.
Proof.
  induction xs as [|y xs IH]; simpl; intros H I; [tauto|].
  destruct I as [->|I].
  - assert (0 <= sum f xs) by (apply sum_nonneg; auto). lra.
  - assert (0 <= f y) by auto. assert (f x <= sum f xs) by auto. lra.
Qed.

Lemma sum_abs f xs : Rabs (sum f xs) <= sum (fun x => Rabs (f x)) xs.
Proof.
  induction xs as [|x xs IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

Lemma sum_permutation f xs ys : Permutation xs ys -> sum f xs = sum f ys.
Proof. induction 1; simpl; lra. Qed.

End Sum.

Lemma sum_map {A B} (f : B -> R) (g : A -> B) xs : sum f (map g xs) = sum (fun x => f (g x)) xs.
Proof. induction xs as [|x xs IH]; simpl; [|rewrite IH]; reflexivity. Qed.

Lemma sum_concat {A} (f : A -> R) xss : sum f (concat xss) = sum (sum f) xss.
Proof. induction xss as [|xs xss IH]; simpl; [|rewrite sum_app, IH]; reflexivity. Qed.
