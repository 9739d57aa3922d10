(* What check.sh makes bridge.csv and counts.csv from. *)
From Coq Require Import ZArith List.
From FD Require Import Levels Bridge.
Import ListNotations.
Set Printing Width 1000000.
Set Printing Depth 1000000.
Redirect "bridge" Eval vm_compute in Bridge.table.
Redirect "counts" Eval vm_compute in Levels.counts_table.
