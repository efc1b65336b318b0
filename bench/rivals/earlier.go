package main

import (
	"github.com/watchmill/watchmill/bench"
	"github.com/watchmill/watchmill/bench/compare"
)

// With --earlier, the rival is watchmill itself, in a build of this command from an earlier
// revision. Two revisions cannot be in one program, so each run has a process of its own:
//
//	rivals --earlier FILE ──▶ rivals --apart W1 --as watchmill ──▶ ours
//	                     └──▶ FILE   --apart W1 --as watchmill ──▶ the earlier one's

// earlier is the contender name of the earlier revision.
const earlier = "earlier"

// againstEarlier returns the plan with the earlier revision as the only rival. Goals are
// about the other rivals, so there are none.
func againstEarlier(plan compare.Plan) compare.Plan {
	rival := plan.Ours
	rival.Name = earlier
	plan.Rivals = []bench.Contender{rival}
	for i := range plan.Workloads {
		plan.Workloads[i].Apart, plan.Workloads[i].Goals = true, nil
	}
	return plan
}
