// Command kubectlprevious is kubectl of the minor version before that of command kubectl,
// built from its module for the tests of package interop. It is a module of its own, since
// one module has one version of kubectl.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
