//! Where a test can let a restore die.

use super::RestoreError;

/// Asked before everything that changes the destination or what is beside it.
#[derive(Debug, Clone, Default)]
pub(super) struct Steps {
    #[cfg(test)]
    left: Option<std::sync::Arc<std::sync::atomic::AtomicI64>>,
}

impl Steps {
    /// Dies after so many.
    #[cfg(test)]
    pub(super) fn dying_after(steps: i64) -> Steps {
        Steps { left: Some(std::sync::Arc::new(steps.into())) }
    }

    /// Goes on, or dies.
    pub(super) fn next(&self) -> Result<(), RestoreError> {
        #[cfg(test)]
        if let Some(left) = &self.left
            && left.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) <= 0
        {
            return Err(RestoreError::Internal { message: "dies".to_owned() });
        }
        Ok(())
    }

    /// Whether it has died: then nothing is tidied up.
    pub(super) fn dead(&self) -> bool {
        #[cfg(test)]
        return self.left.as_ref().is_some_and(|left| left.load(std::sync::atomic::Ordering::SeqCst) < 0);
        #[cfg(not(test))]
        false
    }
}
