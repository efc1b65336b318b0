// Package cluster has the workload that needs a cluster: writes through watchmill's backend
// for etcd, compared with those of etcd's own client.
//
//	writers ──▶ store/backend/etcd ──▶ client ──┐
//	                                            ├──▶ etcd, in this process
//	writers ──────────────────────────▶ client ─┘
//
// It is not in package bench, whose users would get etcd with it. The etcd does not wait for
// the disk, which would hide the backend's own cost.
package cluster
