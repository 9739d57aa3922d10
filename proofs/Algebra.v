(* Why splitting the cache is exact: over the reals, partial softmax states form a commutative monoid under merge, and
   every cut, every merge tree and every choice of shifts gives softmax attention. Rounding is in Tree.v.

   A key is its logit and one column of its value. A state (m, l, o) holds sums relative to its shift m:
   l = sum exp(s_j - m), o = sum exp(s_j - m) v_j, o not normalised. No key is None: an element, not an infinity. *)
From Coq Require Import Reals Lra List Permutation.
From FD Require Import Sum.
Import ListNotations.
Open Scope R_scope.

Record key := Key { logit : R; value : R }.

(* The definition that everything is compared with. *)
Definition mass (ks : list key) := sum (fun k => exp (logit k)) ks.
Definition moment (ks : list key) := sum (fun k => exp (logit k) * value k) ks.
Definition attention ks := moment ks / mass ks.
Definition lse ks := ln (mass ks).

Lemma mass_pos ks : ks <> [] -> 0 < mass ks.
Proof. intros N; apply sum_pos; [exact N|]; intros; apply exp_pos. Qed.

Lemma exp_minus x y : exp (x - y) * exp y = exp x.
Proof. rewrite <- exp_plus; f_equal; ring. Qed.

(* ---- States -------------------------------------------------------------------------------------------------- *)

Record state := State { m : R; l : R; o : R }.
Definition partial := option state.

Definition leaf (k : key) := State (logit k) 1 (value k).

(* Both parts rescaled to one shift and added. *)
Definition merge_at M x y :=
  State M (exp (m x - M) * l x + exp (m y - M) * l y) (exp (m x - M) * o x + exp (m y - M) * o y).

Definition merge (a b : partial) : partial :=
  match a, b with
  | None, _ => b
  | _, None => a
  | Some x, Some y => Some (merge_at (Rmax (m x) (m y)) x y)
  end.

Lemma merge_at_comm M x y : merge_at M x y = merge_at M y x.
Proof. unfold merge_at; f_equal; ring. Qed.

(* A first shift M leaves no trace once the result is brought to N. *)
Lemma merge_at_assoc M M' N x y z : merge_at N (merge_at M x y) z = merge_at N x (merge_at M' y z).
Proof.
  unfold merge_at; cbn [m l o].
  assert (T : forall a K, exp (K - N) * exp (a - K) = exp (a - N))
    by (intros; rewrite <- exp_plus; f_equal; ring).
  f_equal; rewrite !Rmult_plus_distr_l, <- !Rmult_assoc, !T; ring.
Qed.

(* Theorem: merge is a commutative monoid. So partial results may be combined in any order and any grouping, and an
   empty split changes nothing. *)
Theorem merge_comm a b : merge a b = merge b a.
Proof. destruct a, b; simpl; try reflexivity. now rewrite Rmax_comm, merge_at_comm. Qed.

Theorem merge_assoc a b c : merge (merge a b) c = merge a (merge b c).
Proof.
  destruct a as [x|], b as [y|], c as [z|]; simpl; try reflexivity.
  now rewrite Rmax_assoc, (merge_at_assoc _ (Rmax (m y) (m z))).
Qed.

Theorem merge_empty_l a : merge None a = a.
Proof. reflexivity. Qed.

Theorem merge_empty_r a : merge a None = a.
Proof. destruct a; reflexivity. Qed.

(* ---- The state of a list of keys ------------------------------------------------------------------------------ *)

Definition state_of (ks : list key) : partial := fold_right (fun k a => merge (Some (leaf k)) a) None ks.

(* Theorem: the state of a concatenation is the merge of the states. This is all that "split-KV is exact" says. *)
Theorem state_of_app ks ks' : state_of (ks ++ ks') = merge (state_of ks) (state_of ks').
Proof.
  induction ks as [|k ks IH]; simpl; [reflexivity|].
  change (merge (Some (leaf k)) (state_of (ks ++ ks')) = merge (merge (Some (leaf k)) (state_of ks)) (state_of ks')).
  now rewrite IH, merge_assoc.
Qed.

Theorem state_of_concat parts : state_of (concat parts) = fold_right (fun ks a => merge (state_of ks) a) None parts.
Proof. induction parts as [|ks parts IH]; simpl; [reflexivity|]. now rewrite state_of_app, IH. Qed.

Theorem state_of_permutation ks ks' : Permutation ks ks' -> state_of ks = state_of ks'.
Proof.
  induction 1 as [|k a b _ IH|k k' a|a b c _ IH1 _ IH2]; [reflexivity| | |congruence].
  - change (merge (Some (leaf k)) (state_of a) = merge (Some (leaf k)) (state_of b)). now rewrite IH.
  - change (merge (Some (leaf k')) (merge (Some (leaf k)) (state_of a))
            = merge (Some (leaf k)) (merge (Some (leaf k')) (state_of a))).
    now rewrite <- !merge_assoc, (merge_comm (Some (leaf k))).
Qed.

(* The streaming recurrence (online softmax), written as rung 03 computes it ... *)
Definition step (a : partial) (k : key) : partial :=
  match a with
  | None => Some (State (logit k) 1 (value k))
  | Some x =>
      let m' := Rmax (m x) (logit k) in
      Some (State m' (exp (m x - m') * l x + exp (logit k - m')) (exp (m x - m') * o x + exp (logit k - m') * value k))
  end.

(* ... is a fold of the same merge. *)
Theorem streaming_is_merge ks : fold_left step ks None = state_of ks.
Proof.
  assert (G : forall a, fold_left step ks a = merge a (state_of ks)).
  { induction ks as [|k ks IH]; intros a; simpl; [now rewrite merge_empty_r|].
    rewrite IH. change (merge (step a k) (state_of ks) = merge a (merge (Some (leaf k)) (state_of ks))).
    rewrite <- merge_assoc. f_equal.
    destruct a as [x|]; simpl; [|reflexivity]. unfold merge_at; simpl. f_equal; f_equal; ring. }
  rewrite G; reflexivity.
Qed.

(* ---- Any tree, any shifts -------------------------------------------------------------------------------------- *)

(* What a state stands for, whatever its shift. *)
Definition denotes (x : state) ks := exp (m x) * l x = mass ks /\ exp (m x) * o x = moment ks.

Lemma denotes_key M k : denotes (State M (exp (logit k - M)) (exp (logit k - M) * value k)) [k].
Proof. unfold denotes, mass, moment; cbn. rewrite <- (exp_minus (logit k) M); split; ring. Qed.

Lemma denotes_merge M x y ks ks' : denotes x ks -> denotes y ks' -> denotes (merge_at M x y) (ks ++ ks').
Proof.
  unfold denotes, mass, moment; rewrite !sum_app; cbn [merge_at m l o]; intros [<- <-] [<- <-].
  rewrite <- (exp_minus (m x) M), <- (exp_minus (m y) M); split; ring.
Qed.

(* A schedule: keys enter relative to any shift, parts are merged at any shift, parts may be empty. *)
Inductive tree :=
  | Empty
  | Leaf (k : key) (shift : R)
  | Node (shift : R) (t t' : tree).

Fixpoint keys t : list key :=
  match t with Empty => [] | Leaf k _ => [k] | Node _ t t' => keys t ++ keys t' end.

Fixpoint run t : partial :=
  match t with
  | Empty => None
  | Leaf k M => Some (State M (exp (logit k - M)) (exp (logit k - M) * value k))
  | Node M t t' => match run t, run t' with None, b => b | a, None => a | Some x, Some y => Some (merge_at M x y) end
  end.

Lemma run_denotes t : match run t with None => keys t = [] | Some x => denotes x (keys t) end.
Proof.
  induction t as [|k M|M t IH t' IH']; simpl; [reflexivity|apply denotes_key|].
  destruct (run t) as [x|], (run t') as [y|]; rewrite ?IH, ?IH', ?app_nil_r; auto using denotes_merge.
Qed.

Lemma denotes_result x ks : ks <> [] -> denotes x ks -> o x / l x = attention ks /\ m x + ln (l x) = lse ks.
Proof.
  intros N [L O]. assert (P := mass_pos ks N). assert (E := exp_pos (m x)).
  assert (Q : 0 < l x) by (apply (Rmult_lt_reg_l (exp (m x))); [exact E|]; rewrite Rmult_0_r, L; exact P).
  unfold attention, lse; rewrite <- L, <- O; split.
  - field; split; lra.
  - rewrite ln_mult, ln_exp by assumption; reflexivity.
Qed.

(* Theorem: whatever the cuts, the tree and the shifts (running maximum, one maximum a split as in the guide, one
   unified maximum for all as in FlashDecoding++, no shift at all), the result is softmax attention and its lse. *)
Theorem any_tree_any_shift t :
  keys t <> [] -> exists x, run t = Some x /\ o x / l x = attention (keys t) /\ m x + ln (l x) = lse (keys t).
Proof.
  intros N. assert (D := run_denotes t). destruct (run t) as [x|]; [|congruence].
  exists x; split; [reflexivity|]. now apply denotes_result.
Qed.

Theorem no_key_is_empty t : run t = None <-> keys t = [].
Proof.
  induction t as [|k M|M t IH t' IH']; simpl; [tauto|split; discriminate|].
  destruct (run t), (run t'); split; intros H; try discriminate; try reflexivity.
  4: now rewrite (proj1 IH), (proj1 IH').
  all: apply app_eq_nil in H; destruct H as [H H']; first [apply IH in H; discriminate|apply IH' in H'; discriminate].
Qed.

(* In particular the running maximum: state_of, and so the streaming recurrence, is softmax attention. *)
Theorem state_of_attention ks :
  ks <> [] -> exists x, state_of ks = Some x /\ o x / l x = attention ks /\ m x + ln (l x) = lse ks.
Proof.
  assert (D : match state_of ks with None => ks = [] | Some x => denotes x ks end).
  { induction ks as [|k ks IH]; [reflexivity|].
    change (state_of (k :: ks)) with (merge (Some (leaf k)) (state_of ks)).
    assert (L : denotes (leaf k) [k]) by (unfold denotes, mass, moment; cbn; split; ring).
    destruct (state_of ks) as [x|]; [apply (denotes_merge _ _ _ [k]); assumption|rewrite IH; exact L]. }
  intros N. destruct (state_of ks) as [x|]; [|congruence]. exists x; split; [reflexivity|]. now apply denotes_result.
Qed.

(* Corollary: two schedules over the same keys, in any order, agree. *)
Corollary schedules_agree t t' x x' : Permutation (keys t) (keys t') -> run t = Some x -> run t' = Some x' ->
  o x / l x = o x' / l x' /\ m x + ln (l x) = m x' + ln (l x').
Proof.
  intros P E E'. assert (D := run_denotes t). assert (D' := run_denotes t'). rewrite E in D; rewrite E' in D'.
  assert (N' : keys t' <> []) by (intros C; apply no_key_is_empty in C; congruence).
  assert (F : denotes x (keys t')).
  { destruct D as [L O]; split; [rewrite L|rewrite O]; apply sum_permutation; exact P. }
  destruct (denotes_result x _ N' F), (denotes_result x' _ N' D'). split; congruence.
Qed.

(* The two-stage form of the guide: each split (its shift, its keys) sums on its own, then one combine to shift M. *)
Definition split_l (c : R * list key) := sum (fun k => exp (logit k - fst c)) (snd c).
Definition split_o (c : R * list key) := sum (fun k => exp (logit k - fst c) * value k) (snd c).

Theorem split_then_combine M splits : concat (map snd splits) <> [] ->
  sum (fun c => exp (fst c - M) * split_o c) splits / sum (fun c => exp (fst c - M) * split_l c) splits
  = attention (concat (map snd splits)).
Proof.
  intros N. assert (E := exp_pos (- M)). assert (P := mass_pos _ N).
  assert (T : forall a K, exp (K - M) * exp (a - K) = exp (- M) * exp a)
    by (intros; rewrite <- !exp_plus; f_equal; ring).
  assert (L : sum (fun c => exp (fst c - M) * split_l c) splits = exp (- M) * mass (concat (map snd splits))).
  { unfold mass; rewrite sum_concat, sum_map, <- sum_scal. apply sum_ext; intros c _. unfold split_l.
    rewrite <- !sum_scal. apply sum_ext; intros; apply T. }
  assert (O : sum (fun c => exp (fst c - M) * split_o c) splits = exp (- M) * moment (concat (map snd splits))).
  { unfold moment; rewrite sum_concat, sum_map, <- sum_scal. apply sum_ext; intros c _. unfold split_o.
    rewrite <- !sum_scal. apply sum_ext; intros. rewrite <- !Rmult_assoc. now rewrite T. }
  unfold attention; rewrite L, O. field; split; lra.
Qed.

(* ---- Normalised partials, and the (o, lse) form --------------------------------------------------------------- *)

(* Dividing a part by its own l and weighing it by exp(m_c - M) l_c again changes nothing. *)
Theorem normalised_part M x : l x <> 0 ->
  (exp (m x - M) * l x) * (o x / l x) = exp (m x - M) * o x.
Proof. intros; field; assumption. Qed.

Record normal := Normal { out : R; nlse : R }.
Definition to_normal x := Normal (o x / l x) (m x + ln (l x)).

(* Merging two (o, lse) pairs, with weights exp(lse - max) divided by their sum, ... *)
Definition merge_normal a b :=
  let M := Rmax (nlse a) (nlse b) in
  let wa := exp (nlse a - M) in let wb := exp (nlse b - M) in
  Normal ((wa * out a + wb * out b) / (wa + wb)) (M + ln (wa + wb)).

(* ... is the same merge: (o, lse) loses nothing of (m, l, o). *)
Theorem merge_normal_is_merge M x y : 0 < l x -> 0 < l y ->
  to_normal (merge_at M x y) = merge_normal (to_normal x) (to_normal y).
Proof.
  intros X Y. unfold merge_normal, to_normal; cbn [out nlse m l o merge_at].
  set (K := Rmax _ _).
  assert (S : forall z, 0 < l z -> exp (m z + ln (l z) - K) = exp (M - K) * (exp (m z - M) * l z)).
  { intros z Z. rewrite <- Rmult_assoc, <- exp_plus. replace (M - K + (m z - M)) with (m z - K) by ring.
    replace (m z + ln (l z) - K) with (m z - K + ln (l z)) by ring. now rewrite exp_plus, exp_ln. }
  rewrite (S x X), (S y Y), <- Rmult_plus_distr_l.
  assert (Ex := exp_pos (m x - M)). assert (Ey := exp_pos (m y - M)). assert (Ek := exp_pos (M - K)).
  assert (Px := Rmult_lt_0_compat _ _ Ex X). assert (Py := Rmult_lt_0_compat _ _ Ey Y).
  f_equal.
  - field; repeat split; lra.
  - rewrite ln_mult, ln_exp by lra. ring.
Qed.

(* Division-free weights exp(lse_c - lse) sum to 1: the last division may be left out. *)
Theorem division_free a b : let w c := exp (nlse c - nlse (merge_normal a b)) in
  w a + w b = 1 /\ w a * out a + w b * out b = out (merge_normal a b).
Proof.
  unfold merge_normal; cbn [out nlse]. set (M := Rmax _ _).
  assert (Ea := exp_pos (nlse a - M)). assert (Eb := exp_pos (nlse b - M)).
  set (D := exp (nlse a - M) + exp (nlse b - M)). assert (P : 0 < D) by (unfold D; lra).
  assert (W : forall c, exp (nlse c - (M + ln D)) = exp (nlse c - M) / D).
  { intros c. replace (nlse c - (M + ln D)) with (nlse c - M + - ln D) by ring.
    now rewrite exp_plus, exp_Ropp, exp_ln. }
  rewrite !W; split; [unfold D in *; field; lra|field; lra].
Qed.

(* ---- A sink ---------------------------------------------------------------------------------------------------- *)

(* A sink is a logit that enters l once and o not at all: the state (z, 1, 0), a key with value 0. *)
Theorem sink_enters_once t z ks : Permutation (keys t) (Key z 0 :: ks) ->
  exists x, run t = Some x /\ o x / l x = moment ks / (mass ks + exp z) /\ m x + ln (l x) = ln (mass ks + exp z).
Proof.
  intros P. destruct (any_tree_any_shift t) as (x & E & O & L).
  { intros C; rewrite C in P; now apply Permutation_nil in P. }
  exists x; split; [exact E|]. rewrite O, L. unfold attention, lse.
  assert (Ms : mass (keys t) = mass ks + exp z)
    by (unfold mass at 1; rewrite (sum_permutation _ _ _ P); apply Rplus_comm).
  assert (Mo : moment (keys t) = moment ks).
  { unfold moment at 1; rewrite (sum_permutation _ _ _ P). change (exp z * 0 + moment ks = moment ks). ring. }
  rewrite Ms, Mo; split; reflexivity.
Qed.

(* Entering it in each of two splits is another answer. *)
Example sink_twice : moment [Key 0 1] / (mass [Key 0 1] + exp 0) <>
  moment [Key 0 1] / (mass [Key 0 1] + exp 0 + exp 0).
Proof. unfold mass, moment; cbn. rewrite exp_0. lra. Qed.
