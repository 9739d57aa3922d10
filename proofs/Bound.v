(* The pass line: statements (o) and (lse) of README.md section 1, for every merge tree. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient Tree Weights.
Import ListNotations.
Open Scope R_scope.

Section Bound.
Context {A : arithmetic} {B : functions}.

Definition tree_keys t := map pkey (paths t).

(* The keys of a tree with any upper bound [zmax] on the errors of their weights. *)
Definition terms (zmax : path -> R) t :=
  map (fun x => Term (pkey x) (pweight x) (zmax x) (weight_abs (met x)) (up x) (down x)) (paths t).

Lemma terms_keys zmax t : map term_key (terms zmax t) = tree_keys t.
Proof. unfold terms, tree_keys. rewrite map_map. reflexivity. Qed.

Lemma paths_not_empty t : paths t <> [].
Proof.
  induction t as [i M w|t IH t' IH'|M a t IH|M a q b t IH]; cbn [paths]; intros E.
  - discriminate.
  - apply map_eq_nil, app_eq_nil in E. tauto.
  - now apply map_eq_nil in E.
  - now apply map_eq_nil in E.
Qed.

Lemma terms_not_empty zmax t : terms zmax t <> [].
Proof. intros E. apply map_eq_nil in E. now apply (paths_not_empty t). Qed.

Section AnyTree.
Variables (t : tree) (l o : R) (zmax : path -> R).
Hypothesis ran : run t l o.
Hypothesis shifts : shifts_ok t.
Hypothesis top : has_top t.
Hypothesis zmax_bound : forall x, In x (paths t) ->
  Rabs (computed x - logit (pkey x)) + u * (shift t - computed x) + INR (met x) * eps' <= zmax x.

Notation xs := (terms zmax t).
Notation O := (attention (tree_keys t)).

Lemma terms_weight_ok : Forall (weight_ok (shift t)) xs.
Proof.
  apply Forall_forall; intros y I. apply in_map_iff in I. destruct I as (x & <- & I).
  destruct (proj1 (Forall_forall _ _) (tree_weights t shifts) x I) as (z & e & E & Hz & He & Hw & _).
  exists z, e. unfold s; cbn [term_key W Z f]. specialize (zmax_bound x I). repeat split; lra.
Qed.

Lemma terms_num : Rabs (o - sum (fun x => W x * v x) xs) <= sum (fun x => W x * (g (hN x) * Rabs (v x))) xs + EN t.
Proof. unfold terms; rewrite !sum_map. exact (proj1 (tree_sums t l o ran (shifts_unit_weights t shifts))). Qed.

Lemma terms_den : Rabs (l - sum W xs) <= sum (fun x => W x * g (hD x)) xs + ED t.
Proof. unfold terms; rewrite !sum_map. apply (tree_sums t l o ran (shifts_unit_weights t shifts)). Qed.

Lemma terms_lower : sum (fun x => W x * (1 - u) ^ hD x) xs - ED t <= l.
Proof. unfold terms; rewrite !sum_map. apply (tree_sums t l o ran (shifts_unit_weights t shifts)). Qed.

(* F of README.md: Fnum / (Fden - Omega). *)
Definition F := Fnum xs / (Fden xs - Omega xs (shift t) (ED t)).

(* Theorem (o): the sharp bound. For every merge tree, order of additions and choice of shifts within H1 .. H10, the
   output r = fl(o / l) is within (1 + u) (F + V / l) + u |O| + eta of softmax attention. Nothing is first order. *)
Theorem sharp_bound r : 0 < Fden xs - Omega xs (shift t) (ED t) -> rounds eta (o / l) r ->
  Rabs (r - O) <= (1 + u) * (F + V xs (EN t) (ED t) / l) + u * Rabs O + eta.
Proof.
  intros P X. assert (D := denominator_at_least_1 t l o ran shifts top).
  destruct (EN_ED_nonneg t l o ran (shifts_unit_weights t shifts)) as [E1 E2].
  rewrite <- (terms_keys zmax).
  apply (output_error xs (terms_not_empty zmax t) (shift t) o l (EN t) (ED t)); try assumption; try lra.
  - apply terms_weight_ok.
  - apply terms_num.
  - apply terms_den.
  - apply terms_lower.
Qed.

(* Theorem (lse): the log-sum-exp of any tree. *)
Theorem lse_bound y r : 0 < Fden xs - Omega xs (shift t) (ED t) ->
  Rabs (y - ln l) <= eps_l * Rabs (ln l) -> rounds 0 (shift t + y) r ->
  let E := E0 xs (shift t) (ED t) in
  let E1 := E + eps_l * (Rabs (lse (tree_keys t) - shift t) + E) in
  Rabs (r - lse (tree_keys t)) <= E1 + u * (Rabs (lse (tree_keys t)) + E1).
Proof.
  intros P Y X. assert (D := denominator_at_least_1 t l o ran shifts top).
  rewrite <- (terms_keys zmax).
  apply (lse_error xs (terms_not_empty zmax t) (shift t) l (ED t)) with (y := y); try assumption; try lra.
  - apply terms_weight_ok.
  - apply terms_den.
  - apply terms_lower.
Qed.

End AnyTree.

(* ---- Z_j as README.md section 4 computes it from exact data ---------------------------------------------------- *)

(* e x: error bound of the key's logit (Dot.v); top: the largest exact logit; E >= max (e - gap). *)
Definition README_Z (e : path -> R) top E x :=
  e x + u * (top - logit (pkey x) + e x + E) + INR (met x) * eps'.

Lemma README_Z_bound e top E t x0 : shifts_ok t ->
  (forall x, In x (paths t) -> Rabs (computed x - logit (pkey x)) <= e x) ->
  (forall x, In x (paths t) -> e x - (top - logit (pkey x)) <= E) ->
  In x0 (paths t) -> computed x0 = shift t ->
  forall x, In x (paths t) ->
    Rabs (computed x - logit (pkey x)) + u * (shift t - computed x) + INR (met x) * eps' <= README_Z e top E x.
Proof.
  intros S He HE I0 E0 x I. assert (U := u_range). unfold README_Z.
  assert (H0 := He x0 I0). apply abs_le in H0. assert (H := He x I). assert (K := HE x0 I0).
  assert (H' := proj1 (abs_le _ _) H).
  assert (L : shift t - computed x <= top - logit (pkey x) + e x + E) by lra.
  assert (T := Rmult_le_compat_l _ _ _ (proj1 U) L). lra.
Qed.

(* Theorem (o) from exact data: shift at the root the largest computed logit, e_j from the dot product. *)
Theorem pass_line t l o e top E r :
  let xs := terms (README_Z e top E) t in
  run t l o -> shifts_ok t ->
  (exists x, In x (paths t) /\ computed x = shift t) ->
  (forall x, In x (paths t) -> Rabs (computed x - logit (pkey x)) <= e x) ->
  (forall x, In x (paths t) -> e x - (top - logit (pkey x)) <= E) ->
  0 < Fden xs - Omega xs (shift t) (ED t) -> rounds eta (o / l) r ->
  Rabs (r - attention (tree_keys t)) <=
    (1 + u) * (F t (README_Z e top E) + V xs (EN t) (ED t) / l) + u * Rabs (attention (tree_keys t)) + eta.
Proof.
  intros xs Hrun S (x0 & I0 & E0) He HE P X.
  apply (sharp_bound t l o); try assumption.
  - now apply (top_exists t x0).
  - now apply (README_Z_bound e top E t x0).
Qed.

End Bound.
