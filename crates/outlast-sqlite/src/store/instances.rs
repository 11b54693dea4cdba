//! Sandboxes that were created, or are to be.

use async_trait::async_trait;
use outlast_core::InstanceId;
use outlast_core::run::ClaimToken;
use outlast_store::{Instance, InstanceError, InstanceState, Instances, StoreError};

use super::SqliteStore;
use crate::sql;
use crate::writer::Urgency::Urgent;

#[async_trait]
impl Instances for SqliteStore {
    async fn create_instance(&self, token: &ClaimToken, instance: &Instance) -> Result<(), InstanceError> {
        let (token, instance) = (token.clone(), instance.clone());
        self.write(Urgent, move |tx| sql::create_instance(tx, &token, &instance)).await
    }

    async fn use_instance(&self, token: &ClaimToken, instance: &InstanceId) -> Result<(), InstanceError> {
        let (token, instance) = (token.clone(), instance.clone());
        self.write(Urgent, move |tx| sql::use_instance(tx, &token, &instance)).await
    }

    async fn set_instance_state(
        &self,
        instance: &InstanceId,
        state: InstanceState,
    ) -> Result<(), InstanceError> {
        let instance = instance.clone();
        self.write(Urgent, move |tx| sql::set_instance_state(tx, &instance, state)).await
    }

    async fn instance(&self, instance: &InstanceId) -> Result<Option<Instance>, StoreError> {
        let instance = instance.clone();
        self.view(move |view| sql::instance(view, &instance)).await
    }

    async fn find_instance(
        &self,
        sandbox_key: &str,
        machine: Option<&str>,
    ) -> Result<Option<Instance>, StoreError> {
        let (key, machine) = (sandbox_key.to_owned(), machine.map(ToOwned::to_owned));
        self.view(move |view| sql::find_instance(view, &key, machine.as_deref())).await
    }
}
