(* Section 3, 4 and 6 of README.md: one induction over merge trees. A rung is a tree: keys enter at its leaves, sums are
   added, parts are rescaled to another shift. Every number in a tree is a computed one. *)
From Coq Require Import Reals Lra Lia List.
From FD Require Import Sum Round Exp Algebra Quotient.
Import ListNotations.
Open Scope R_scope.

(* A visible key: what it is, its computed logit, and a bound on the error of that (Dot.v). *)
Record input := Input { ikey : key; shat : R; serr : R }.

(* Leaf: a key, the shift, the computed weight fl(exp(fl(logit - shift))).
   Add: two parts with the same shift. Rescale: l and o times a = fl(exp(fl(old shift - shift))).
   Normalise: o divided by the part's own l and weighed again by w = fl(a l); q is the size of the normalised partial,
   b that of a l, both only for the absolute errors of underflow. *)
Inductive tree :=
  | Leaf (x : input) (shift w : R)
  | Add (t t' : tree)
  | Rescale (shift a : R) (t : tree)
  | Normalise (shift a q b : R) (t : tree).

Fixpoint shift t := match t with Leaf _ M _ | Rescale M _ _ | Normalise M _ _ _ _ => M | Add t _ => shift t end.

(* A key on its way: its weight so far (the product of computed exponentials), how many of them (R_j), how many factors
   1 + delta its term met in the numerator (hN_j) and in the denominator (hD_j). *)
Record path := Path { pin : input; pweight : R; met : nat; up : nat; down : nat }.
Definition pkey x := ikey (pin x).
Definition computed x := shat (pin x).
Definition move a r i j x := Path (pin x) (a * pweight x) (r + met x) (i + up x) (j + down x).

Fixpoint paths t : list path :=
  match t with
  | Leaf i _ w => [Path i w 1 1 0]
  | Add t t' => map (move 1 0 1 1) (paths t ++ paths t')
  | Rescale _ a t => map (move a 1 1 1) (paths t)
  | Normalise _ a _ _ t => map (move a 1 3 1) (paths t)
  end.

Section Tree.
Context {A : arithmetic} {B : functions}.

(* ---- The sums -------------------------------------------------------------------------------------------------- *)

(* l and o are results that the tree may give. p v + o may be contracted to an FMA. *)
Inductive run : tree -> R -> R -> Prop :=
  | run_leaf i M w o : rounds eta (w * value (ikey i)) o -> run (Leaf i M w) w o
  | run_add t t' l l' o o' rl ro : run t l o -> run t' l' o' -> rounds 0 (l + l') rl -> rounds oadd (o + o') ro ->
      run (Add t t') rl ro
  | run_fma i M w t l o rl ro : run t l o -> rounds 0 (l + w) rl -> rounds eta (w * value (ikey i) + o) ro ->
      run (Add t (Leaf i M w)) rl ro
  | run_rescale M a t l o rl ro : run t l o -> rounds eta (a * l) rl -> rounds eta (a * o) ro ->
      run (Rescale M a t) rl ro
  | run_normalise M a q b t l o w oc ro : run t l o -> 0 < l -> rounds eta (a * l) w -> a * l <= b ->
      rounds eta (o / l) oc -> Rabs oc <= q -> rounds eta (w * oc) ro -> run (Normalise M a q b t) w ro.

(* What underflow can add to the two sums. *)
Fixpoint EN t := match t with
  | Leaf _ _ _ => eta
  | Add t t' => (1 + u) * (EN t + EN t') + oadd
  | Rescale _ _ t => (1 + u) * EN t + eta
  | Normalise _ _ q b t => (1 + u) ^ 3 * EN t + (1 + u) ^ 2 * eta * b + (1 + u) * eta * q + eta
  end.
Fixpoint ED t := match t with
  | Leaf _ _ _ => 0
  | Add t t' => (1 + u) * (ED t + ED t')
  | Rescale _ _ t | Normalise _ _ _ _ t => (1 + u) * ED t + eta
  end.

(* Weights are not negative, rescale factors in [0, 1]. *)
Fixpoint unit_weights t := match t with
  | Leaf _ _ w => 0 <= w
  | Add t t' => unit_weights t /\ unit_weights t'
  | Rescale _ a t | Normalise _ a _ _ t => 0 <= a <= 1 /\ unit_weights t
  end.

Definition num xs := sum (fun x => pweight x * value (pkey x)) xs.
Definition den xs := sum pweight xs.
Definition size xs := sum (fun x => pweight x * Rabs (value (pkey x))) xs.
Definition numG xs := sum (fun x => pweight x * (g (up x) * Rabs (value (pkey x)))) xs.
Definition denG xs := sum (fun x => pweight x * g (down x)) xs.
Definition denL xs := sum (fun x => pweight x * (1 - u) ^ down x) xs.

Lemma num_app xs ys : num (xs ++ ys) = num xs + num ys. Proof. apply sum_app. Qed.
Lemma den_app xs ys : den (xs ++ ys) = den xs + den ys. Proof. apply sum_app. Qed.
Lemma size_app xs ys : size (xs ++ ys) = size xs + size ys. Proof. apply sum_app. Qed.
Lemma numG_app xs ys : numG (xs ++ ys) = numG xs + numG ys. Proof. apply sum_app. Qed.
Lemma denG_app xs ys : denG (xs ++ ys) = denG xs + denG ys. Proof. apply sum_app. Qed.
Lemma denL_app xs ys : denL (xs ++ ys) = denL xs + denL ys. Proof. apply sum_app. Qed.

Lemma num_move a r i j xs : num (map (move a r i j) xs) = a * num xs.
Proof. unfold num. rewrite sum_map, <- sum_scal. apply sum_ext; intros; unfold pkey; simpl; ring. Qed.
Lemma den_move a r i j xs : den (map (move a r i j) xs) = a * den xs.
Proof. unfold den. rewrite sum_map, <- sum_scal. apply sum_ext; intros; unfold pkey; simpl; ring. Qed.
Lemma size_move a r i j xs : size (map (move a r i j) xs) = a * size xs.
Proof. unfold size. rewrite sum_map, <- sum_scal. apply sum_ext; intros; unfold pkey; simpl; ring. Qed.
Lemma numG_move_0 a r j xs : numG (map (move a r 0 j) xs) = a * numG xs.
Proof. unfold numG. rewrite sum_map, <- sum_scal. apply sum_ext; intros; unfold pkey; simpl; ring. Qed.
Lemma numG_move_S a r i j xs :
  numG (map (move a r (S i) j) xs) = (1 + u) * numG (map (move a r i j) xs) + u * (a * size xs).
Proof.
  unfold numG, size. rewrite !sum_map, <- !sum_scal, <- sum_plus.
  apply sum_ext; intros; unfold pkey; cbn [move pin pweight up Nat.add]. rewrite g_S. ring.
Qed.
Lemma denG_move a r i xs : denG (map (move a r i 1) xs) = a * ((1 + u) * denG xs + u * den xs).
Proof.
  unfold denG, den. rewrite sum_map, <- !sum_scal, <- sum_plus, <- sum_scal.
  apply sum_ext; intros; cbn [move pweight down Nat.add]. rewrite g_S. ring.
Qed.
Lemma denL_move a r i xs : denL (map (move a r i 1) xs) = a * ((1 - u) * denL xs).
Proof. unfold denL. rewrite sum_map, <- !sum_scal. apply sum_ext; intros; unfold pkey; simpl; ring. Qed.

Lemma weights_nonneg t x : unit_weights t -> In x (paths t) -> 0 <= pweight x.
Proof.
  revert x; induction t as [i M w|t IH t' IH'|M a t IH|M a q b t IH]; simpl; intros x H I.
  - destruct I as [<-|[]]. simpl; lra.
  - apply in_map_iff in I. destruct I as (y & <- & I). simpl. apply in_app_iff in I.
    assert (0 <= pweight y) by (destruct I; [apply IH|apply IH']; tauto). lra.
  - apply in_map_iff in I. destruct I as (y & <- & I). simpl. apply Rmult_le_pos; [lra|]. now apply IH.
  - apply in_map_iff in I. destruct I as (y & <- & I). simpl. apply Rmult_le_pos; [lra|]. now apply IH.
Qed.

Lemma sizes t : unit_weights t -> Rabs (num (paths t)) <= size (paths t) /\ 0 <= den (paths t) /\ 0 <= size (paths t)
  /\ 0 <= denL (paths t).
Proof.
  intros H. assert (P := fun x I => weights_nonneg t x H I). repeat split.
  - eapply Rle_trans; [apply sum_abs|]. apply sum_le; intros x I.
    rewrite Rabs_mult, (Rabs_right (pweight x)); [lra|]. apply Rle_ge, P, I.
  - apply sum_nonneg, P.
  - apply sum_nonneg; intros x I. apply Rmult_le_pos; [apply P, I|apply Rabs_pos].
  - apply sum_nonneg; intros x I. apply Rmult_le_pos; [apply P, I|]. left; apply down_range.
Qed.

Definition sums_ok t l o :=
  Rabs (o - num (paths t)) <= numG (paths t) + EN t /\
  Rabs (l - den (paths t)) <= denG (paths t) + ED t /\
  denL (paths t) - ED t <= l /\ 0 <= l.

Lemma EN_ED_nonneg t l o : run t l o -> unit_weights t -> 0 <= EN t /\ 0 <= ED t.
Proof.
  assert (U := u_range). assert (E := eta_nonneg). assert (E' := oadd_nonneg).
  induction 1 as [i M w o X|t t' l l' o o' rl ro _ IH _ IH' _ _|i M w t l o rl ro _ IH _ _
    |M a t l o rl ro _ IH _ _|M a q b t l o w oc ro _ IH P _ Lb _ Q _]; cbn [EN ED unit_weights]; intros H.
  - lra.
  - destruct IH, IH'; try tauto. split; nra.
  - destruct IH; [tauto|]. split; nra.
  - destruct IH; [tauto|]. split; nra.
  - destruct IH; [tauto|]. assert (0 <= b) by nra. assert (0 <= q) by (eapply Rle_trans; [apply Rabs_pos|exact Q]).
    assert (0 <= eta * b) by nra. assert (0 <= eta * q) by nra. assert (G := up_ge_1 3). assert (G2 := up_ge_1 2).
    split; [|nra]. assert (0 <= (1 + u) ^ 2 * (eta * b)) by nra. assert (0 <= (1 + u) * (eta * q)) by nra.
    assert (0 <= (1 + u) ^ 3 * EN t) by nra. lra.
Qed.

Lemma abs_product x y c : 0 <= x -> Rabs y <= c -> Rabs (x * y) <= x * c.
Proof. intros P H. rewrite Rabs_mult, (Rabs_right x) by lra. now apply Rmult_le_compat_l. Qed.

(* A weight w = fl(a l) times a normalised partial fl(o / l): l cancels, three roundings of o remain. *)
Lemma normalised_step a b q n G E S l o w oc ro :
  0 <= a <= 1 -> 0 < l -> a * l <= b -> Rabs oc <= q ->
  Rabs (o - n) <= G + E -> Rabs n <= S -> 0 <= E ->
  rounds eta (a * l) w -> rounds eta (o / l) oc -> rounds eta (w * oc) ro ->
  Rabs (ro - a * n) <= (1 + u) * ((1 + u) * ((1 + u) * (a * G) + u * (a * S)) + u * (a * S)) + u * (a * S)
    + ((1 + u) ^ 3 * E + (1 + u) ^ 2 * eta * b + (1 + u) * eta * q + eta).
Proof.
  intros Ha Hl Hb Hq D Sn HE W Q X. assert (U := u_range). assert (P := eta_nonneg).
  (* l oc is o with one rounding and l eta; w oc is a l oc with another and q eta. *)
  assert (B1 : Rabs (a * l * oc - a * n) <= (1 + u) * (a * (G + E)) + u * (a * S) + eta * b).
  { replace (a * l * oc - a * n) with (a * l * (oc - o / l) + a * (o - n)) by (field; lra).
    assert (T := error _ _ _ Q). assert (N := abs_product a (o - n) _ (proj1 Ha) D).
    assert (al : 0 <= a * l) by (apply Rmult_le_pos; lra).
    assert (T' := abs_product (a * l) _ _ al T).
    assert (Ol : a * l * Rabs (o / l) = a * Rabs o).
    { unfold Rdiv. rewrite Rabs_mult, Rabs_inv, (Rabs_right l) by lra. field; lra. }
    assert (Oa : Rabs o <= G + E + S).
    { replace o with ((o - n) + n) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra. }
    assert (K := Rmult_le_compat_l _ _ _ (proj1 Ha) Oa). assert (K' := Rmult_le_compat_l _ _ _ P Hb).
    assert (K2 := Rmult_le_compat_l _ _ _ (proj1 U) K).
    eapply Rle_trans; [apply Rabs_triang|]. nra. }
  assert (Sa := abs_product a n S (proj1 Ha) Sn).
  assert (B2 : Rabs (w * oc - a * n)
    <= (1 + u) * ((1 + u) * (a * (G + E)) + u * (a * S) + eta * b) + u * (a * S) + eta * q).
  { replace (w * oc - a * n) with ((w - a * l) * oc + (a * l * oc - a * n)) by ring.
    assert (T := error _ _ _ W). assert (al : 0 <= a * l) by (apply Rmult_le_pos; lra).
    rewrite (Rabs_right (a * l)) in T by lra.
    assert (K : Rabs ((w - a * l) * oc) <= u * Rabs (a * l * oc) + eta * q).
    { rewrite !Rabs_mult, (Rabs_right a), (Rabs_right l) by lra.
      assert (K1 := Rmult_le_compat_r _ _ _ (Rabs_pos oc) T). assert (K2 := Rmult_le_compat_l _ _ _ P Hq). lra. }
    assert (K2 : Rabs (a * l * oc) <= (1 + u) * (a * (G + E)) + u * (a * S) + eta * b + a * S).
    { replace (a * l * oc) with ((a * l * oc - a * n) + a * n) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. lra. }
    assert (K3 := Rmult_le_compat_l _ _ _ (proj1 U) K2).
    eapply Rle_trans; [apply Rabs_triang|]. lra. }
  eapply Rle_trans; [apply (rounds_error _ _ _ _ _ _ X B2 Sa)|].
  assert (F : (1 + u) ^ 3 * (a * E) <= (1 + u) ^ 3 * E).
  { apply Rmult_le_compat_l; [apply pow_le; lra|]. nra. }
  simpl in *. nra.
Qed.

(* One rounded step of o, and of l, as the sums see it. *)
Lemma step_o e x r y G E S : rounds e x r -> Rabs (x - y) <= G + E -> Rabs y <= S ->
  Rabs (r - y) <= ((1 + u) * G + u * S) + ((1 + u) * E + e).
Proof. intros X D Sy. eapply Rle_trans; [apply (rounds_error _ _ _ _ _ _ X D Sy)|]. lra. Qed.

Lemma step_l e x r y G E lo : rounds e x r -> 0 <= x -> 0 <= E -> 0 <= y ->
  Rabs (x - y) <= G + E -> lo - E <= x ->
  Rabs (r - y) <= ((1 + u) * G + u * y) + ((1 + u) * E + e) /\ (1 - u) * lo - ((1 + u) * E + e) <= r /\ 0 <= r.
Proof.
  intros X P HE Y D L. assert (U := u_range). split; [|split; [|now apply (not_below_0 _ _ _ X)]].
  - apply (step_o e x r y G E y X D). rewrite Rabs_right; lra.
  - assert (T := rounds_lower _ _ _ _ X P L). nra.
Qed.

Lemma closer x y x' y' a b c d : Rabs (x - y) <= a + b -> Rabs (x' - y') <= c + d ->
  Rabs (x + x' - (y + y')) <= (a + c) + (b + d).
Proof.
  intros D D'. replace (x + x' - (y + y')) with ((x - y) + (x' - y')) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

Lemma scaled_error a x y G E : 0 <= a <= 1 -> 0 <= E -> Rabs (x - y) <= G + E -> Rabs (a * x - a * y) <= a * G + E.
Proof.
  intros P HE D. rewrite <- Rmult_minus_distr_l. eapply Rle_trans; [apply (abs_product _ _ _ (proj1 P) D)|]. nra.
Qed.

(* Theorem: the sums of any tree. The weights are the computed ones, so an error in them is shared by N and D and does
   not appear here; each key meets hN_j and hD_j factors; underflow adds EN and ED. *)
Theorem tree_sums t l o : run t l o -> unit_weights t -> sums_ok t l o.
Proof.
  assert (U := u_range). assert (P := eta_nonneg). assert (P' := oadd_nonneg).
  induction 1 as [i M w o X|t t' l l' o o' rl ro H IH H' IH' XL XO|i M w t l o rl ro H IH XL XO
    |M a t l o rl ro H IH XL XO|M a q b t l o w oc ro H IH Pl XL Lb XQ Q XO]; intros HU; cbn [unit_weights] in HU;
    unfold sums_ok; cbn [paths EN ED].
  - assert (T := error _ _ _ X). rewrite Rabs_mult, (Rabs_right w) in T by lra.
    unfold num, den, numG, denG, denL, pkey; cbn. replace (w - (w + 0)) with 0 by ring.
    rewrite Rabs_R0, !Rplus_0_r. unfold g; simpl. lra.
  - destruct HU as [H1 H2]. destruct (IH H1) as (N & D & L & Z), (IH' H2) as (N' & D' & L' & Z').
    destruct (sizes t H1) as (S1 & S2 & S3 & S4), (sizes t' H2) as (S1' & S2' & S3' & S4').
    destruct (EN_ED_nonneg t l o H H1) as [E1 E2], (EN_ED_nonneg t' l' o' H' H2) as [E1' E2'].
    rewrite num_move, den_move, numG_move_S, numG_move_0, denG_move, denL_move,
      num_app, den_app, size_app, numG_app, denG_app, denL_app, !Rmult_1_l.
    assert (Sn : Rabs (num (paths t) + num (paths t')) <= size (paths t) + size (paths t'))
      by (eapply Rle_trans; [apply Rabs_triang|]; lra).
    split; [exact (step_o _ _ _ _ _ _ _ XO (closer _ _ _ _ _ _ _ _ N N') Sn)|].
    rewrite <- (Rplus_0_r ((1 + u) * (ED t + ED t'))).
    apply (step_l 0 (l + l')); try assumption; try lra. now apply closer.
  - destruct HU as [H1 H2]. destruct (IH H1) as (N & D & L & Z). destruct (sizes t H1) as (S1 & S2 & S3 & S4).
    destruct (EN_ED_nonneg t l o H H1) as [E1 E2].
    rewrite num_move, den_move, numG_move_S, numG_move_0, denG_move, denL_move,
      num_app, den_app, size_app, numG_app, denG_app, denL_app, !Rmult_1_l.
    unfold num at 2, den at 2 4, numG at 2, denG at 2, denL at 2, size at 2.
    unfold pkey; cbn [paths sum fold_right pweight pin up down].
    rewrite !Rplus_0_r, g_0, Rmult_0_r, Rplus_0_r, pow_O, Rmult_1_r. set (vk := value (ikey i)) in *.
    assert (Wv : Rabs (w * vk) = w * Rabs vk) by (rewrite Rabs_mult, (Rabs_right w); lra).
    assert (Sn : Rabs (num (paths t) + w * vk) <= size (paths t) + w * Rabs vk)
      by (eapply Rle_trans; [apply Rabs_triang|]; lra).
    assert (D0 : Rabs (w * vk + o - (num (paths t) + w * vk)) <= numG (paths t) + EN t)
      by (replace (w * vk + o - (num (paths t) + w * vk)) with (o - num (paths t)) by ring; exact N).
    assert (T := step_o _ _ _ _ _ _ _ XO D0 Sn). assert (G1 := g_nonneg 1).
    split.
    + assert (K : 0 <= w * (g 1 * Rabs vk)) by (apply Rmult_le_pos; [|apply Rmult_le_pos, Rabs_pos]; lra). nra.
    + rewrite <- (Rplus_0_r ((1 + u) * ED t)). apply (step_l 0 (l + w)); try assumption; try lra.
      replace (l + w - (den (paths t) + w)) with (l - den (paths t)) by ring. exact D.
  - destruct HU as [Ha H1]. destruct (IH H1) as (N & D & L & Z). destruct (sizes t H1) as (S1 & S2 & S3 & S4).
    destruct (EN_ED_nonneg t l o H H1) as [E1 E2].
    rewrite num_move, den_move, numG_move_S, numG_move_0, denG_move, denL_move.
    split; [exact (step_o _ _ _ _ _ _ _ XO (scaled_error _ _ _ _ _ Ha E1 N) (abs_product _ _ _ (proj1 Ha) S1))|].
    replace (a * ((1 + u) * denG (paths t) + u * den (paths t)))
      with ((1 + u) * (a * denG (paths t)) + u * (a * den (paths t))) by ring.
    replace (a * ((1 - u) * denL (paths t))) with ((1 - u) * (a * denL (paths t))) by ring.
    apply (step_l _ (a * l)); try assumption; try nra. now apply scaled_error.
  - destruct HU as [Ha H1]. destruct (IH H1) as (N & D & L & Z). destruct (sizes t H1) as (S1 & S2 & S3 & S4).
    destruct (EN_ED_nonneg t l o H H1) as [E1 E2].
    rewrite num_move, den_move, !numG_move_S, numG_move_0, denG_move, denL_move.
    split; [exact (normalised_step _ _ _ _ _ _ _ _ _ _ _ _ Ha Pl Lb Q N S1 E1 XL XQ XO)|].
    replace (a * ((1 + u) * denG (paths t) + u * den (paths t)))
      with ((1 + u) * (a * denG (paths t)) + u * (a * den (paths t))) by ring.
    replace (a * ((1 - u) * denL (paths t))) with ((1 - u) * (a * denL (paths t))) by ring.
    apply (step_l _ (a * l)); try assumption; try nra. now apply scaled_error.
Qed.

End Tree.
