(* The formula of Formula.v is above the theorems' bound, whatever the inflations: pass_line_stated and lse_stated hold
   with the numbers that the judge computes. *)
From Coq Require Import Reals ZArith Lra Lia List.
From Flocq Require Import Core.
From FD Require Import Sum Round Exp Algebra Quotient PassLine Grow Lse Coarse JudgeU Rung05 OneLevel.
From FD Require Import Dot Evaluate Formula.
Import ListNotations.
Open Scope R_scope.

(* The carrier of [reals] is R. *)
Ltac in_R := match goal with |- @eq _ ?a ?b => change (@eq R a b) end.

Definition val (x : dyad) : R := @dyadic reals x.

Lemma whole_INR n : @whole reals n = INR n.
Proof. unfold whole; simpl. now rewrite Rmult_1_r, INR_IZR_INZ. Qed.
Lemma power_pow (x : R) n : @power reals x n = x ^ n.
Proof. induction n as [|n IH]; [exact (whole_INR 1)|]. cbn [power pow]. now rewrite IH. Qed.
Lemma total_sum {X} (f : X -> R) xs : @total reals X f xs = sum f xs.
Proof. unfold total, sum. now rewrite whole_INR. Qed.
Lemma largest_ge {X} (f : X -> R) xs x : In x xs -> f x <= @largest reals X f xs.
Proof.
  induction xs as [|y xs IH]; intros I; [destruct I|]. cbn [largest fold_right].
  destruct I as [->|I]; [apply Rmax_l|]. eapply Rle_trans; [exact (IH I)|apply Rmax_r].
Qed.
Lemma largest_0 {X} (f : X -> R) xs : 0 <= @largest reals X f xs.
Proof.
  destruct xs as [|x xs]; [cbn; lra|]. cbn [largest fold_right]. induction xs as [|y xs IH].
  - cbn. assert (T := Rmax_r (f x) (0 * 1)). lra.
  - cbn [fold_right]. eapply Rle_trans; [exact IH|]. apply Rle_max_compat_l, Rmax_r.
Qed.

Lemma map_below {X Y} (P : X -> Y -> Prop) (Q : Y -> Prop) F G xs ys : Forall2 P xs ys -> Forall Q ys ->
  (forall x y, P x y -> Q y -> le_term (F x) (G y)) -> Forall2 le_term (map F xs) (map G ys).
Proof.
  intros H K L. induction H as [|x y xs ys H Hs IH]; [constructor|]. apply Forall_cons_iff in K. destruct K as [K Ks].
  constructor; [now apply L|now apply IH].
Qed.

Lemma on_the_right {X Y} (P : X -> Y -> Prop) x xs ys : Forall2 P xs ys -> In x xs -> exists y, In y ys /\ P x y.
Proof.
  induction 1 as [|x' y xs ys H Hs IH]; intros I; [destruct I|].
  destruct I as [->|I]; [exists y; split; [now left|exact H]|].
  destruct (IH I) as (z & Iz & Pz). exists z; split; [now right|exact Pz].
Qed.

Section Covers.
Context {A : arithmetic} {B : functions}.
Hypothesis ieee : oadd = 0.
Variables (M : margin) (r : rounding) (w : row) (c : tally) (ks : list jkey).

(* The judge's constants are those of the arithmetic; its margins only add. *)
Hypothesis u_is : val (ru r) = u.
Hypothesis eta_is : val (reta r) = eta.
Hypothesis eps_is : val (reps r) = eps.
Hypothesis eta_e_is : val (reta_e r) = eta_e.
Hypothesis eps_l_is : val (reps_l r) = eps_l.
Hypothesis infl : 1 <= val (inflate M).
Hypothesis flo : 1 <= val (floors M).
Hypothesis gp : 0 <= val (gap_part M).
Hypothesis ep : 0 <= val (eta_part M).
Hypothesis sp : 0 <= val (sum_part M).
Hypothesis some : ks <> [].
Hypothesis gaps : Forall (fun k => 0 <= val (kgap k)) ks.
Hypothesis top_key : exists k, In k ks /\ val (kgap k) = 0.

Notation jE := (@j_E reals M r w ks).
Notation jep := (@j_eps' reals r).
Notation jlc := (@j_c reals ks).
Notation jZ := (@j_Z reals M r w jE jep).
Notation Top := (val (top w)).

(* What a theorem knows of a key is at most what the judge does. *)
Definition known_as (d : datum) (k : jkey) := dkey d = Key (Top - val (kgap k)) (val (kv k)) /\
  0 <= de d <= @j_e reals M r w k /\ (1 <= dR d <= kR k)%nat.
Variable ds : list datum.
Hypothesis known : Forall2 known_as ds ks.

Definition jterm k := Term (Key (Top - val (kgap k)) (val (kv k))) 0 (jZ k)
  (eta_e * INR (kR k) * (1 + eps) ^ (kR k - 1)) (j_hN c k) (j_hD c k).
Notation ys := (map jterm ks).
Notation xs := (readme_terms Top jE (tA c) (tL c) ds).

Lemma eps'_is : jep = eps'.
Proof.
  unfold j_eps', eps'. rewrite !whole_INR. change (@dyadic reals (reps r)) with (val (reps r)). rewrite eps_is.
  cbn [sub loga reals INR]. in_R. ring.
Qed.

Lemma omega_is k : @j_omega reals r k = eta_e * INR (kR k) * (1 + eps) ^ (kR k - 1).
Proof.
  unfold j_omega. rewrite !whole_INR. rewrite power_pow.
  change (@dyadic reals (reps r)) with (val (reps r)). change (@dyadic reals (reta_e r)) with (val (reta_e r)).
  now rewrite eps_is, eta_e_is.
Qed.

Lemma up_is h : @j_up reals r h = (1 + u) ^ h.
Proof.
  unfold j_up, j_u. rewrite power_pow, whole_INR. change (@dyadic reals (ru r)) with (val (ru r)).
  now rewrite u_is.
Qed.
Lemma down_is h : @j_down reals r h = (1 - u) ^ h.
Proof.
  unfold j_down, j_u. rewrite power_pow, whole_INR. change (@dyadic reals (ru r)) with (val (ru r)).
  now rewrite u_is.
Qed.
Lemma g_is h : @j_g reals r h = g h.
Proof. unfold j_g. now rewrite up_is, whole_INR. Qed.

Ltac constants := change (@dyadic reals (ru r)) with (val (ru r)); change (@dyadic reals (reta r)) with (val (reta r));
  rewrite ?u_is, ?eta_is; cbn [add sub mul quo size expo loga larger reals].

Lemma e_grows d k : 0 <= val (kgap k) -> known_as d k ->
  de d + u * (Top - logit (dkey d) + de d + jE) + INR (dR d) * eps' <= jZ k.
Proof.
  intros G (K & (P & L) & R1 & R2). rewrite K; cbn [logit]. unfold j_Z. rewrite eps'_is, whole_INR. unfold j_u, j_eta.
  constants. change (@dyadic reals (kgap k)) with (val (kgap k)).
  change (@dyadic reals (inflate M)) with (val (inflate M)).
  change (@dyadic reals (eta_part M)) with (val (eta_part M)).
  set (e := @j_e reals M r w k) in *. assert (U := u_range). assert (Q := eps'_nonneg). assert (H := eta_nonneg).
  assert (I := le_INR _ _ R2). assert (I0 := pos_INR (dR d)). assert (E0 : 0 <= jE) by apply largest_0.
  assert (T1 : u * (Top - (Top - val (kgap k)) + de d + jE) <= u * (val (kgap k) + e + jE))
    by (apply Rmult_le_compat_l; lra).
  assert (T2 : INR (dR d) * eps' <= INR (kR k) * (eps' + val (eta_part M) * eta)).
  { assert (0 <= val (eta_part M) * eta) by (apply Rmult_le_pos; lra). apply Rmult_le_compat; lra. }
  assert (T3 : 0 <= u * (val (kgap k) + e + jE)) by (apply Rmult_le_pos; lra).
  assert (T4 : 0 <= INR (kR k) * (eps' + val (eta_part M) * eta)).
  { apply Rle_trans with (2 := T2). now apply Rmult_le_pos. }
  apply Rle_trans with (e + u * (val (kgap k) + e + jE) + INR (kR k) * (eps' + val (eta_part M) * eta)); [lra|].
  rewrite <- (Rmult_1_r (_ + _ + _)) at 1. apply Rmult_le_compat_l; lra.
Qed.

Lemma terms_below : Forall2 le_term xs ys.
Proof.
  apply (map_below known_as (fun k => 0 <= val (kgap k))); [exact known|exact gaps|]. intros d k K G.
  unfold le_term; cbn [term_key Z f hN hD jterm]. assert (T := e_grows d k G K). destruct K as (K & _ & R1 & R2).
  split; [exact K|]. split; [exact T|]. split; [exact (proj2 (abs_grows _ _ R2))|]. unfold j_hN, j_hD; lia.
Qed.

Lemma xs_some : xs <> [].
Proof. intros E. apply map_eq_nil in E. rewrite E in known. inversion known; congruence. Qed.

Lemma keys_are : map dkey ds = map term_key ys.
Proof. rewrite <- (same_keys _ _ terms_below). unfold readme_terms. now rewrite map_map. Qed.

(* p_j from gap_j. *)
Notation S0 := (sum (fun k => exp (- val (kgap k))) ks).
Lemma S0_pos : 0 < S0.
Proof. apply sum_pos; [exact some|]. intros; apply exp_pos. Qed.
Lemma c_is : jlc = ln S0.
Proof.
  unfold j_c. constants. f_equal. rewrite total_sum. apply sum_ext; intros k _. rewrite whole_INR. cbn [sub reals INR].
  now rewrite Rminus_0_l.
Qed.
Lemma mass_is : mass (map term_key ys) = exp Top * S0.
Proof.
  unfold mass. rewrite !sum_map, <- sum_scal. apply sum_ext; intros k _. cbn [jterm term_key logit].
  rewrite <- exp_plus. f_equal; ring.
Qed.
Lemma lse_is : lse (map term_key ys) = Top + jlc.
Proof.
  unfold lse. rewrite mass_is, c_is, ln_mult, ln_exp; [reflexivity|apply exp_pos|apply S0_pos].
Qed.
Lemma p_is k : @j_p reals jlc k = p ys (jterm k).
Proof.
  unfold j_p, p, s. rewrite mass_is, whole_INR. constants. cbn [jterm term_key logit INR].
  change (@dyadic reals (kgap k)) with (val (kgap k)).
  rewrite c_is, Rminus_0_l. unfold Rminus. rewrite !exp_plus, (exp_Ropp (ln S0)), exp_ln by apply S0_pos.
  assert (P := S0_pos). assert (Q := exp_pos Top). in_R. field. split; lra.
Qed.
Notation O := (attention (map term_key ys)).
Lemma output_is : @j_output reals ks jlc = O.
Proof.
  unfold j_output. rewrite total_sum. unfold attention, moment. unfold Rdiv. rewrite Rmult_comm, <- sum_scal, !sum_map.
  apply sum_ext; intros k _. constants. rewrite p_is. unfold p, s; cbn [jterm term_key logit value]. unfold Rdiv.
  change (@dyadic reals (kv k)) with (val (kv k)). ring.
Qed.

Lemma num_is : @j_num reals M r w c ks jE jep jlc O = Fnum ys.
Proof.
  unfold j_num, Fnum. rewrite total_sum, <- sum_plus, !sum_map. apply sum_ext; intros k _.
  unfold j_p_high. constants. rewrite p_is, !g_is, !whole_INR. cbn [jterm v Z hN hD term_key value INR].
  change (@dyadic reals (kv k)) with (val (kv k)). reflexivity.
Qed.

Notation Om := (@j_Omega reals r c ks jE jlc).
Lemma low_is : @j_low reals M r w c ks jE jep jlc = Fden ys - Om.
Proof.
  unfold j_low, Fden. constants. f_equal. rewrite total_sum, sum_map. apply sum_ext; intros k _.
  constants. rewrite p_is, down_is, whole_INR. cbn [jterm Z hD INR]. now rewrite Rminus_0_l.
Qed.
Lemma high_is : @j_high reals M r w c ks jE jep jlc = Fup ys + Om.
Proof.
  unfold j_high, Fup. constants. f_equal. rewrite total_sum, sum_map. apply sum_ext; intros k _.
  unfold j_p_high. constants. rewrite p_is, up_is. reflexivity.
Qed.

Notation X := (INR (tX c)).
Lemma Omega_is : Om = (sum f ys + 2 * X * eta) * exp (Top + jE - lse (map term_key ys)) * (1 + u) ^ (tA c + tR c).
Proof.
  unfold j_Omega, j_eta. constants. rewrite up_is, !whole_INR, total_sum, lse_is, sum_map. unfold top_D.
  replace (Top + jE - (Top + jlc)) with (jE - jlc) by ring. simpl (INR 2).
  rewrite (sum_ext _ (fun k => f (jterm k))); [reflexivity|]. intros k _. apply omega_is.
Qed.

Lemma f_nonneg_ys x : In x ys -> 0 <= f x.
Proof. intros I. apply in_map_iff in I. destruct I as (k & <- & _). cbn [jterm f].
  now apply (abs_grows (kR k) (kR k)). Qed.

Lemma both_Omegas : readme_Omega ds Top jE (tA c) (tL c) (tR c) X <= Om /\
  readme_Omega_up ds Top jE (tA c) (tL c) (tR c) X <= Om.
Proof.
  assert (T := f_grows _ _ terms_below). assert (Xp := pos_INR (tX c)).
  assert (F0 : 0 <= sum f ys) by (apply sum_nonneg; apply f_nonneg_ys).
  assert (G := up_ge_1 (tA c + tR c)). assert (Q := page_Omega_covers (tA c + tR c) (sum f ys) X F0 Xp).
  assert (P := Rmult_le_pos _ _ eta_nonneg Xp). rewrite Omega_is. 
  unfold readme_Omega, readme_Omega_up. rewrite keys_are.
  set (x := exp _). assert (Px : 0 < x) by apply exp_pos. set (h := (1 + u) ^ _) in *.
  replace ((sum f ys + 2 * X * eta) * x * h) with ((sum f ys + 2 * X * eta) * h * x) by ring.
  split; (apply Rmult_le_compat_r; [lra|]); [lra|].
  assert (h * (sum f xs + eta * X) <= h * (sum f ys + eta * X)) by (apply Rmult_le_compat_l; lra).
  assert (h * (sum f ys + eta * X) <= h * (sum f ys + 2 * X * eta)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(* What underflow adds: page_U_covers and page_U_covers_05 discharge this. *)
Variable St : R.
Notation vmax := (@j_vmax reals ks).
Notation ab := (sum (fun x => f x * (Rabs (v x) + Rabs O)) ys).
Hypothesis St_nonneg : 0 <= St.
Hypothesis U_covered : (1 + u) * ((1 + u) ^ (1 + tA c + tR c + 2 * tL c)
  * (ab + (eta * (INR (length ks) + X + St) + oadd * (INR (length ks) - 1)) + eta * X * Rabs O)) + eta
  <= page_U (1 + tA c + tR c + 2 * tL c) (tA c + tR c) ab (INR (length ks)) X (INR (tP c)) (INR (tL c)) vmax (Rabs O).

Lemma U_is : @j_U reals r c ks O
  = page_U (1 + tA c + tR c + 2 * tL c) (tA c + tR c) ab (INR (length ks)) X (INR (tP c)) (INR (tL c)) vmax (Rabs O).
Proof.
  unfold j_U, page_U, j_magnify, magnify, j_eta, top_N, top_D. cbv zeta. constants.
  rewrite up_is, down_is, !whole_INR, total_sum, sum_map. simpl (INR 2). simpl (INR 1).
  rewrite (sum_ext _ (fun k => f (jterm k) * (Rabs (v (jterm k)) + Rabs O))).
  - in_R; ring.
  - intros k _. constants. now rewrite omega_is.
Qed.

Lemma length_is : length ds = length ks.
Proof. assert (T := known). clear -T. induction T as [|d k l l' K H IH]; cbn; congruence. Qed.

Lemma U_below : (1 + u) * readme_U ds Top jE (tA c) (tL c) (tR c) X St + eta <= @j_U reals r c ks O.
Proof.
  rewrite U_is. eapply Rle_trans; [|exact U_covered]. unfold readme_U. rewrite keys_are, length_is.
  assert (U := u_range). assert (G := up_ge_1 (1 + tA c + tR c + 2 * tL c)).
  apply Rplus_le_compat_r, Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; [lra|].
  apply Rplus_le_compat_r, Rplus_le_compat_r. apply sum_le2; [exact terms_below|].
  intros x y (K & _ & L & _). unfold v; rewrite K. apply Rmult_le_compat_r; [|exact L].
  assert (Q := Rabs_pos (value (term_key y))). assert (Q' := Rabs_pos O). lra.
Qed.

Hypothesis low_pos : 0 < @j_low reals M r w c ks jE jep jlc.

Lemma den_below : @j_low reals M r w c ks jE jep jlc <= readme_den ds Top jE (tA c) (tL c) (tR c) X.
Proof.
  rewrite low_is. unfold readme_den. assert (T := Fden_shrinks _ _ terms_below xs_some).
  assert (Q := proj1 both_Omegas). lra.
Qed.

Lemma Z_xs x : In x xs -> 0 <= Z x.
Proof.
  intros I. apply in_map_iff in I. destruct I as (d & <- & I). cbn [Z].
  assert (T := on_the_right _ _ _ _ known I).
  destruct T as (k & Ik & K & (P & _) & _). rewrite K; cbn [logit].
  assert (G := proj1 (Forall_forall _ _) gaps k Ik). cbv beta in G.
  assert (U := u_range). assert (Q := eps'_nonneg). assert (I0 := pos_INR (dR d)).
  assert (E0 : 0 <= jE) by apply largest_0.
  assert (0 <= u * (Top - (Top - val (kgap k)) + de d + jE)) by (apply Rmult_le_pos; lra).
  assert (0 <= INR (dR d) * eps') by now apply Rmult_le_pos. lra.
Qed.

(* Theorem: the bound of pass_line_stated is at most the number that the judge computes. *)
Theorem judge_covers : readme_bound ds Top jE (tA c) (tL c) (tR c) X St <= @j_bound reals M r w c ks.
Proof.
  unfold j_bound. cbv zeta. rewrite output_is. constants. rewrite num_is, whole_INR. simpl (INR 1).
  change (@dyadic reals (inflate M)) with (val (inflate M)). unfold readme_bound, readme_F. rewrite keys_are.
  unfold j_u. constants. assert (U := u_range). assert (D := den_below).
  assert (N := Fnum_grows _ _ terms_below xs_some).
  assert (N0 := Fnum_nonneg xs xs_some Z_xs).
  assert (Q : Fnum xs / readme_den ds Top jE (tA c) (tL c) (tR c) X <= Fnum ys / @j_low reals M r w c ks jE jep jlc).
  { apply Rmult_le_compat; [exact N0|left; apply Rinv_0_lt_compat; lra|exact N|apply Rinv_le_contravar; lra]. }
  assert (P : 0 <= Fnum xs / readme_den ds Top jE (tA c) (tL c) (tR c) X)
    by (apply Rmult_le_pos; [exact N0|left; apply Rinv_0_lt_compat; lra]).
  assert (V := U_below). set (a := Fnum xs / _) in *. set (b := Fnum ys / _) in *. set (o0 := Rabs O) in *.
  assert (Po : 0 <= o0) by apply Rabs_pos. assert (T := Rmult_le_compat_l _ _ _ (proj1 U) Q).
  assert (T' := Rmult_le_pos _ _ (proj1 U) Po).
  assert (W : (1 + u) * (a + readme_U ds Top jE (tA c) (tL c) (tR c) X St) + u * o0 + eta
    <= (1 + u) * b + u * o0 + @j_U reals r c ks O) by lra.
  assert (Pu : 0 <= readme_U ds Top jE (tA c) (tL c) (tR c) X St).
  { unfold readme_U. rewrite keys_are, length_is.
    apply Rmult_le_pos; [assert (G := up_ge_1 (1 + tA c + tR c + 2 * tL c)); lra|].
    assert (F0 : 0 <= sum (fun x => f x * (Rabs (v x) + Rabs O)) xs).
    { apply sum_nonneg; intros x I. apply Rmult_le_pos; [now apply f_terms in I|]. assert (Rp := Rabs_pos (v x)).
      assert (Rq := Rabs_pos O). lra. }
    assert (E := eta_nonneg). assert (In := pos_INR (length ks)). assert (Xp := pos_INR (tX c)). rewrite ieee.
    assert (0 <= eta * (INR (length ks) + X + St)) by (apply Rmult_le_pos; lra).
    assert (0 <= eta * X * Rabs O) by (apply Rmult_le_pos; [now apply Rmult_le_pos|apply Rabs_pos]). lra. }
  assert (Wp : 0 <= (1 + u) * b + u * o0 + @j_U reals r c ks O).
  { assert (E := eta_nonneg). assert (0 <= (1 + u) * (a + readme_U ds Top jE (tA c) (tL c) (tR c) X St))
      by (apply Rmult_le_pos; lra). lra. }
  eapply Rle_trans; [exact W|]. rewrite <- (Rmult_1_r (_ + _ + _)) at 1. apply Rmult_le_compat_l; lra.
Qed.

(* Theorem: the same for lse. *)
Theorem judge_covers_lse : readme_lse_bound ds Top jE (tA c) (tL c) (tR c) X <= @j_lse_bound reals M r w c ks.
Proof.
  unfold j_lse_bound. cbv zeta. constants. rewrite low_is, high_is, !whole_INR. simpl (INR 0).
  change (@dyadic reals (inflate M)) with (val (inflate M)).
  change (@dyadic reals (sum_part M)) with (val (sum_part M)).
  change (@dyadic reals (reps_l r)) with (val (reps_l r)). change (@dyadic reals (top w)) with Top. rewrite eps_l_is.
  unfold j_u. constants. unfold readme_lse_bound, readme_E1. rewrite keys_are, lse_is.
  assert (U := u_range). assert (L := eps_l_nonneg). assert (D := den_below). rewrite low_is in D.
  assert (lp : 0 < Fden ys - Om) by (rewrite <- low_is; exact low_pos).
  assert (Fu := Fup_grows _ _ terms_below xs_some). assert (Ou := proj2 both_Omegas).
  assert (LnLe : forall x x', 0 < x -> x <= x' -> ln x <= ln x').
  { intros x x' Hx Hl. destruct (Rle_lt_or_eq_dec _ _ Hl) as [K| ->]; [left; now apply ln_increasing|lra]. }
  assert (F1 : 0 < Fup xs).
  { apply sum_pos; [exact xs_some|]. intros x I. assert (P1 := p_pos xs xs_some x). assert (P2 := exp_pos (Z x)).
    assert (G := up_ge_1 (hD x)). apply Rmult_lt_0_compat; [now apply Rmult_lt_0_compat|lra]. }
  assert (Oup : 0 <= readme_Omega_up ds Top jE (tA c) (tL c) (tR c) X).
  { apply Rmult_le_pos; [|left; apply exp_pos]. assert (G := up_ge_1 (tA c + tR c)). apply Rmult_le_pos; [lra|].
    assert (F0 : 0 <= sum f xs) by (apply sum_nonneg; intros x I; now apply f_terms in I).
    assert (T := Rmult_le_pos _ _ eta_nonneg (pos_INR (tX c))). lra. }
  set (e := readme_E0 ds Top jE (tA c) (tL c) (tR c) X). set (m := Rmax (ln (Fup ys + Om)) (0 - ln (Fden ys - Om))).
  assert (Em : e <= m).
  { unfold e, m, readme_E0. apply Rmax_case.
    - eapply Rle_trans; [|apply Rmax_l]. apply LnLe; lra.
    - eapply Rle_trans; [|apply Rmax_r]. rewrite Rminus_0_l. apply Ropp_le_contravar, LnLe; lra. }
  assert (F2 : 1 <= Fup xs).
  { rewrite <- (p_sum xs xs_some). apply sum_le; intros x I. assert (P1 := p_pos xs xs_some x).
    assert (P2 := exp_le _ _ (Z_xs x I)). rewrite exp_0 in P2. assert (G := up_ge_1 (hD x)). rewrite Rmult_assoc.
    rewrite <- (Rmult_1_r (p xs x)) at 1. apply Rmult_le_compat_l; [lra|]. nra. }
  assert (e0 : 0 <= e).
  { unfold e, readme_E0. eapply Rle_trans; [|apply Rmax_l]. rewrite <- ln_1. apply LnLe; lra. }
  set (n2 := INR (length ks) * val (sum_part M)).
  assert (Pn : 0 <= n2) by (apply Rmult_le_pos; [apply pos_INR|exact sp]).
  set (b := m * val (inflate M) + n2). assert (Eb : e <= b) by (unfold b; nra).
  assert (J0 : 0 <= jE) by apply largest_0.
  assert (C0 : 0 <= jlc).
  { rewrite c_is, <- ln_1. apply LnLe; [lra|]. destruct top_key as (k & Ik & Ek).
    rewrite <- exp_0, <- Ropp_0, <- Ek.
    apply (sum_ge_term (fun k => exp (- val (kgap k)))); [intros; left; apply exp_pos|exact Ik]. }
  replace (Top + jlc - Top + jE + e) with (jlc + jE + e) by ring.
  assert (T : e + eps_l * (jlc + jE + e) <= b + eps_l * (jlc + jE + b)).
  { apply Rplus_le_compat; [exact Eb|]. apply Rmult_le_compat_l; lra. }
  assert (T00 : 0 <= eps_l * (jlc + jE + e)).
  { apply Rmult_le_pos; [lra|]. apply Rplus_le_le_0_compat; [|exact e0]. now apply Rplus_le_le_0_compat. }
  assert (T0 : 0 <= e + eps_l * (jlc + jE + e)) by lra.
  set (x := e + _) in *. set (y := b + _) in *. assert (Q := Rabs_pos (Top + jlc)).
  assert (W : x + u * (Rabs (Top + jlc) + x) <= y + u * (Rabs (Top + jlc) + y)).
  { apply Rplus_le_compat; [exact T|]. apply Rmult_le_compat_l; lra. }
  assert (W0 : 0 <= y + u * (Rabs (Top + jlc) + y)).
  { assert (0 <= u * (Rabs (Top + jlc) + y)) by (apply Rmult_le_pos; lra). lra. }
  eapply Rle_trans; [exact W|]. rewrite <- (Rmult_1_r (y + _)) at 1. apply Rmult_le_compat_l; lra.
Qed.
End Covers.

(* ---- For the trees ----------------------------------------------------------------------------------------------- *)

(* H1 without flushing; constants as the judge has them; each margin at least the page's. *)
Record same_constants `{arithmetic} `{functions} (r : rounding) : Prop := {
  same_u : val (ru r) = u; same_eta : val (reta r) = eta; same_eps : val (reps r) = eps;
  same_eta_e : val (reta_e r) = eta_e; same_eps_l : val (reps_l r) = eps_l }.
Definition margin_ok M := 1 <= val (inflate M) /\ 1 <= val (floors M) /\ 0 <= val (gap_part M) /\
  0 <= val (eta_part M) /\ 0 <= val (sum_part M).

Lemma page_ok : margin_ok page.
Proof. unfold margin_ok, val, page; cbn. lra. Qed.
Lemma judge_ok : margin_ok judge.
Proof. unfold margin_ok, val, judge; cbn. lra. Qed.

Section Trees.
Context {A : arithmetic} {B : functions}.
Hypothesis ieee : oadd = 0.
Variables (M : margin) (r : rounding) (w : row) (ks : list jkey) (ds : list datum).
Hypothesis constants : same_constants r.
Hypothesis M_ok : margin_ok M.
Hypothesis some : ks <> [].
Hypothesis gaps : Forall (fun k => 0 <= val (kgap k)) ks.
Hypothesis top_key : exists k, In k ks /\ val (kgap k) = 0.
Hypothesis known : Forall2 (known_as M r w) ds ks.
Notation jE := (@j_E reals M r w ks).
Notation Low c := (@j_low reals M r w c ks jE (@j_eps' reals r) (@j_c reals ks)).
Notation ys c := (map (jterm M r w c ks) ks).

Lemma ab_nonneg c : 0 <= sum (fun x => f x * (Rabs (v x) + Rabs (attention (map term_key (ys c))))) (ys c).
Proof.
  apply sum_nonneg; intros x I. apply in_map_iff in I. destruct I as (k & <- & _). cbn [jterm f].
  apply Rmult_le_pos; [apply (abs_grows (kR k) (kR k)); lia|].
  assert (P := Rabs_pos (v (jterm M r w c ks k))). assert (Q := Rabs_pos (attention (map term_key (ys c)))). lra.
Qed.

(* Theorem: any tree without normalised parts. *)
Theorem covers_plain a rs X : let c := Tally a 0 rs X 0 in 0 < Low c ->
  readme_bound ds (val (top w)) jE a 0 rs (INR X) 0 <= @j_bound reals M r w c ks.
Proof.
  intros c P. destruct constants, M_ok as (M1 & M2 & M3 & M4 & M5). assert (S0 : 0 <= 0) by lra.
  apply (judge_covers ieee M r w c ks) with (St := 0); try assumption.
  cbn [c tA tL tR tX tP]. assert (K := page_U_covers ieee (1 + a + rs + 2 * 0) (a + rs)
    _ (INR (length ks)) (INR X) (@j_vmax reals ks) _ ltac:(lia) (ab_nonneg c) (pos_INR _) (pos_INR _)
    (Rabs_pos (attention (map term_key (ys c))))). exact K.
Qed.

(* Theorem: rung 05, C keys a split at most, K splits. *)
Theorem covers_05 C K : let c := Tally (C + K - 2) 1 1 K K in (1 <= C)%nat -> (1 <= K)%nat ->
  INR K * (INR C + 1) * eta <= 1 -> 0 < Low c ->
  readme_bound ds (val (top w)) jE (C + K - 2) 1 1 (INR K)
    (INR K * part_size C (@j_vmax reals ks) + (1 + u) ^ (C - 1) * INR (length ks)) <= @j_bound reals M r w c ks.
Proof.
  intros c HC HK Small P. destruct constants, M_ok as (M1 & M2 & M3 & M4 & M5).
  assert (V0 : 0 <= @j_vmax reals ks) by apply largest_0. assert (U := u_range). assert (E := eta_nonneg).
  assert (Pp : 0 <= part_size C (@j_vmax reals ks)).
  { unfold part_size. assert (G := up_ge_1 C). assert (D := down_range (C - 1)). assert (IC := pos_INR C). rewrite ieee.
    assert (0 <= @j_vmax reals ks * (1 + u) ^ C / (1 - u) ^ (C - 1)).
    { apply Rmult_le_pos; [apply Rmult_le_pos; lra|left; apply Rinv_0_lt_compat; lra]. }
    assert (0 <= (1 + u) ^ C * (eta * INR C + 0 * INR (C - 1))).
    { apply Rmult_le_pos; [lra|]. rewrite Rmult_0_l, Rplus_0_r. now apply Rmult_le_pos. }
    assert (0 <= (1 + u) * (@j_vmax reals ks * (1 + u) ^ C / (1 - u) ^ (C - 1)
      + (1 + u) ^ C * (eta * INR C + 0 * INR (C - 1)))) by (apply Rmult_le_pos; lra). lra. }
  assert (St0 : 0 <= INR K * part_size C (@j_vmax reals ks) + (1 + u) ^ (C - 1) * INR (length ks)).
  { apply Rplus_le_le_0_compat; apply Rmult_le_pos; try apply pos_INR; [exact Pp|].
    assert (G := up_ge_1 (C - 1)); lra. }
  apply (judge_covers ieee M r w c ks); try assumption.
  cbn [c tA tL tR tX tP]. assert (T := page_U_covers_05 ieee C K _ (INR (length ks)) (@j_vmax reals ks) _ HC HK
    (ab_nonneg c) (pos_INR _) V0 (Rabs_pos (attention (map term_key (ys c)))) Small).
  replace (1 + (C + K - 2) + 1 + 2 * 1)%nat with (C + K + 2)%nat by lia.
  replace (C + K - 2 + 1)%nat with (C + K - 1)%nat by lia. simpl (INR 1). exact T.
Qed.

(* Theorem: any tree with one level of normalised parts. *)
Theorem covers_one_level a rs X P : let c := Tally a 1 rs X P in let n := INR (length ks) in
  eta * INR X <= 1 -> INR P * (n + 2 * INR X + 1) * eta <= / 2 -> 0 < Low c ->
  readme_bound ds (val (top w)) jE a 1 rs (INR X)
    (stored_most (1 + a + rs + 2) (a + rs) n (INR X) (INR P) (@j_vmax reals ks)) <= @j_bound reals M r w c ks.
Proof.
  intros c n Sx Small L. destruct constants, M_ok as (M1 & M2 & M3 & M4 & M5).
  assert (V0 : 0 <= @j_vmax reals ks) by apply largest_0. assert (E := eta_nonneg). assert (U := u_range).
  assert (n0 : 0 <= n) by apply pos_INR. assert (X0 := pos_INR X). assert (P0 := pos_INR P).
  assert (G := up_ge_1 (a + rs)). assert (G1 := up_ge_1 (1 + a + rs + 2)).
  assert (e0 : 0 <= eta * INR X) by now apply Rmult_le_pos.
  assert (d0 : 0 <= (1 + u) ^ (a + rs) * (eta * INR X)) by (apply Rmult_le_pos; lra).
  assert (St0 : 0 <= stored_most (1 + a + rs + 2) (a + rs) n (INR X) (INR P) (@j_vmax reals ks)).
  { unfold stored_most, part_most. assert (Mg := magnify_ge (1 + a + rs + 2) (a + rs)).
    assert (0 <= @j_vmax reals ks * magnify (1 + a + rs + 2) (a + rs)) by (apply Rmult_le_pos; lra).
    assert (0 <= @j_vmax reals ks * magnify (1 + a + rs + 2) (a + rs) * (1 + (1 + u) ^ (a + rs) * (eta * INR X)))
      by (apply Rmult_le_pos; lra).
    assert (0 <= (1 + u) ^ (1 + a + rs + 2) * (eta * (n + INR X)))
      by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra. }
  apply (judge_covers ieee M r w c ks); try assumption.
  cbn [c tA tL tR tX tP]. replace (1 + a + rs + 2 * 1)%nat with (1 + a + rs + 2)%nat by lia. simpl (INR 1).
  exact (page_U_covers_one ieee (1 + a + rs + 2) (a + rs) _ n (INR X) (INR P) _ _ ltac:(lia) (ab_nonneg c) n0 X0 P0 V0
    (Rabs_pos (attention (map term_key (ys c)))) Sx Small).
Qed.

(* Theorem: lse, for any tree. *)
Theorem covers_lse a nl rs X P : let c := Tally a nl rs X P in 0 < Low c ->
  readme_lse_bound ds (val (top w)) jE a nl rs (INR X) <= @j_lse_bound reals M r w c ks.
Proof.
  intros c L. destruct constants, M_ok as (M1 & M2 & M3 & M4 & M5).
  apply (judge_covers_lse M r w c ks); assumption.
Qed.
End Trees.
