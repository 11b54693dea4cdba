//! The local provider as the suite sees it.

use std::sync::Arc;

use outlast_core::shim::FenceChoice;
use outlast_sandbox::conformance::Subject;
use outlast_sandbox::{LocalConfig, LocalProvider, Provider, ShimProgram};
use outlast_store::Ports;

/// A root of its own for each trial.
pub struct Local {
    pub root: tempfile::TempDir,
    fence: FenceChoice,
}

impl Local {
    pub fn new(fence: FenceChoice) -> Self {
        Local { root: tempfile::tempdir().expect("root"), fence }
    }

    pub fn with_ports(&self, ports: Ports) -> LocalProvider {
        let program = std::env::current_exe().expect("this program");
        let shim = ShimProgram { program, args: vec![crate::SHIM.into()] };
        LocalProvider::new(LocalConfig { root: self.root.path().join("sandboxes"), shim, ports })
            .expect("provider")
    }
}

impl Subject for Local {
    fn provider(&self) -> Arc<dyn Provider> {
        Arc::new(self.with_ports(self.ports()))
    }

    fn fence(&self) -> FenceChoice {
        self.fence
    }

    fn ports(&self) -> Ports {
        Ports::system()
    }
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(future)
}

/// Why the machine does not grant this fence, if it does not: found by launching under it.
pub fn refusal(fence: FenceChoice) -> Option<String> {
    use outlast_core::shim::OutputLimits;
    let local = Local::new(fence);
    let (provider, entropy) = (local.provider(), local.ports().entropy);
    let instance = entropy.instance_id();
    block_on(async {
        provider.create(&instance, None).await.expect("create");
        let order = outlast_sandbox::LaunchOrder {
            run: outlast_core::RunId::new("probe").expect("id"),
            secret: entropy.exit_secret(),
            argv: vec!["true".into()],
            prompt: None,
            prompt_on_stdin: false,
            fallback: None,
            env: vec![],
            cwd: "/".into(),
            fence,
            limits: OutputLimits::default(),
            instance,
        };
        provider.launch(order).await.err().map(|error| error.to_string())
    })
}
