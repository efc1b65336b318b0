package queue_test

import "testing"

// The scenarios that testdata holds, each a test of its own so that its name
// says which behaviour of client-go it is about.

func TestClientRow016_FIFO_AddUpdate(t *testing.T) {
	runFIFO(t, "fifo/row016_add_update")
}

func TestClientRow017_FIFO_AddReplace(t *testing.T) {
	runFIFO(t, "fifo/row017_add_replace")
}

func TestClientRow018_FIFO_LineJumpers(t *testing.T) {
	runFIFO(t, "fifo/row018_line_jumpers")
}

func TestClientRow019_FIFO_HasSynced(t *testing.T) {
	runFIFO(t, "fifo/row019_has_synced")
}

func TestClientRow022_DeltaFIFO_ReplaceWithDeleteQueued(t *testing.T) {
	runFIFO(t, "delta/row022_replace_with_delete_queued")
}

func TestClientRow023_DeltaFIFO_ReplaceDeletesWhatIsOnlyQueued(t *testing.T) {
	runFIFO(t, "delta/row023_replace_deletes_what_is_only_queued")
}

func TestClientRow024_DeltaFIFO_AddUpdate(t *testing.T) {
	runFIFO(t, "delta/row024_add_update")
}

func TestClientRow026_DeltaFIFO_DeleteOfUnknown(t *testing.T) {
	runFIFO(t, "delta/row026_delete_of_unknown")
}

func TestClientRow027_DeltaFIFO_DeleteOfKnown(t *testing.T) {
	runFIFO(t, "delta/row027_delete_of_known")
}

func TestClientRow028_DeltaFIFO_AddReplace(t *testing.T) {
	runFIFO(t, "delta/row028_add_replace")
}

func TestClientRow029_DeltaFIFO_ResyncBehindDelete(t *testing.T) {
	runFIFO(t, "delta/row029_resync_behind_delete")
}

func TestClientRow030_DeltaFIFO_Resync(t *testing.T) {
	runFIFO(t, "delta/row030_resync")
}

func TestClientRow031_DeltaFIFO_DeleteBeforePop(t *testing.T) {
	runFIFO(t, "delta/row031_delete_before_pop")
}

func TestClientRow032_DeltaFIFO_ReplaceMakesDeletions(t *testing.T) {
	runFIFO(t, "delta/row032_replace_makes_deletions")
}

func TestClientRow033_DeltaFIFO_ReplaceMakesDeletionsReplaced(t *testing.T) {
	runFIFO(t, "delta/row033_replace_makes_deletions_replaced")
}

func TestClientRow034_DeltaFIFO_ReplaceType(t *testing.T) {
	runFIFO(t, "delta/row034_replace_type")
}

func TestClientRow035_DeltaFIFO_ResyncBehindUpdate(t *testing.T) {
	runFIFO(t, "delta/row035_resync_behind_update")
}

func TestClientRow036_DeltaFIFO_DeletionsAreInitial(t *testing.T) {
	runFIFO(t, "delta/row036_deletions_are_initial")
}

func TestClientRow037_DeltaFIFO_LineJumpers(t *testing.T) {
	runFIFO(t, "delta/row037_line_jumpers")
}

func TestClientRow039_DeltaFIFO_HasSynced(t *testing.T) {
	runFIFO(t, "delta/row039_has_synced")
}

func TestClientRow042_RealFIFO_ReplaceWithDeleteQueued(t *testing.T) {
	runFIFO(t, "real/row042_replace_with_delete_queued")
}

func TestClientRow043_RealFIFO_ReplaceDeletesWhatIsOnlyQueued(t *testing.T) {
	runFIFO(t, "real/row043_replace_deletes_what_is_only_queued")
}

func TestClientRow044_RealFIFO_AddUpdate(t *testing.T) {
	runFIFO(t, "real/row044_add_update")
}

func TestClientRow046_RealFIFO_DeleteOfUnknown(t *testing.T) {
	runFIFO(t, "real/row046_delete_of_unknown")
}

func TestClientRow047_RealFIFO_DeleteOfKnown(t *testing.T) {
	runFIFO(t, "real/row047_delete_of_known")
}

func TestClientRow048_RealFIFO_AddReplace(t *testing.T) {
	runFIFO(t, "real/row048_add_replace")
}

func TestClientRow049_RealFIFO_ResyncBehindDelete(t *testing.T) {
	runFIFO(t, "real/row049_resync_behind_delete")
}

func TestClientRow050_RealFIFO_Resync(t *testing.T) {
	runFIFO(t, "real/row050_resync")
}

func TestClientRow051_RealFIFO_DeleteBeforePop(t *testing.T) {
	runFIFO(t, "real/row051_delete_before_pop")
}

func TestClientRow052_RealFIFO_ReplaceMakesDeletions(t *testing.T) {
	runFIFO(t, "real/row052_replace_makes_deletions")
}

func TestClientRow053_RealFIFO_ReplaceMakesDeletionsReplaced(t *testing.T) {
	runFIFO(t, "real/row053_replace_makes_deletions_replaced")
}

func TestClientRow054_RealFIFO_ResyncBehindUpdate(t *testing.T) {
	runFIFO(t, "real/row054_resync_behind_update")
}

func TestClientRow055_RealFIFO_DeletionsAreInitial(t *testing.T) {
	runFIFO(t, "real/row055_deletions_are_initial")
}

func TestClientRow056_RealFIFO_ArrivalOrder(t *testing.T) {
	runFIFO(t, "real/row056_arrival_order")
}

func TestClientRow058_RealFIFO_HasSynced(t *testing.T) {
	runFIFO(t, "real/row058_has_synced")
}

func TestClientRow060_RealFIFO_Batches(t *testing.T) {
	runFIFO(t, "real/row060_batches")
}

func TestClientRow062_RealFIFO_AtomicEmptyReplaceIsProcessedFirst(t *testing.T) {
	runFIFO(t, "real/row062_atomic_empty_replace_is_processed_first")
}

func TestClientRow062_RealFIFO_AtomicReplace(t *testing.T) {
	runFIFO(t, "real/row062_atomic_replace")
}

func TestClientRow063_RealFIFO_AtomicReplaceAfterAdd(t *testing.T) {
	runFIFO(t, "real/row063_atomic_replace_after_add")
}

func TestClientRow064_RealFIFO_AtomicResync(t *testing.T) {
	runFIFO(t, "real/row064_atomic_resync")
}

func TestPain_DeltaFIFO_ChurnOfOneKey(t *testing.T) {
	runFIFO(t, "delta/churn_of_one_key")
}

func TestPain_DeltaFIFO_CloseDrains(t *testing.T) {
	runFIFO(t, "delta/close_drains")
}

func TestPain_DeltaFIFO_TwoDeletionsAreOne(t *testing.T) {
	runFIFO(t, "delta/two_deletions_are_one")
}

func TestPain_FIFO_ChurnOfOneKey(t *testing.T) {
	runFIFO(t, "fifo/churn_of_one_key")
}

func TestPain_FIFO_DeletedBeforePopIsSynced(t *testing.T) {
	runFIFO(t, "fifo/deleted_before_pop_is_synced")
}
